//! furnace-server with the model of the race: `race-furnace PORT ZOO [BATCH]`,
//! and over gRPC at the next port.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use furnace::{FurnaceError, HostTensor, IoSpec, Model, ModelError, Server, TensorModel, Values};
use switchyard_models::StagedModel;

/// The perceptron behind the interface of another engine.
struct Perceptron {
    model: Arc<dyn StagedModel>,
    samples: usize,
}

impl fmt::Debug for Perceptron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Perceptron")
    }
}

impl TensorModel for Perceptron {
    fn name(&self) -> &str {
        "mlp"
    }

    fn backend(&self) -> &str {
        "cpu"
    }

    fn inputs(&self) -> Vec<IoSpec> {
        vec![IoSpec::fp32("x", &[self.samples])]
    }

    fn outputs(&self) -> Vec<IoSpec> {
        vec![IoSpec::fp32("probabilities", &[self.model.classes()])]
    }

    fn run(&self, mut inputs: Vec<HostTensor>) -> furnace::Result<Vec<HostTensor>> {
        let Values::F32(values) = inputs.swap_remove(0).values else {
            unreachable!("checked against inputs()");
        };
        let run = || {
            let rows = values.len() / self.samples;
            let x = Tensor::from_vec(values, (rows, self.samples), &Device::Cpu)?;
            let y = self.model.forward(0, &x)?;
            candle_core::Result::Ok((rows, y.flatten_all()?.to_vec1()?))
        };
        let (rows, values) = run().map_err(|error| {
            FurnaceError::Model(ModelError::InferenceFailed(error.to_string()))
        })?;
        let shape = vec![rows, self.model.classes()];
        let values = Values::F32(values);
        Ok(vec![HostTensor { shape, values }])
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, port, zoo, rest @ ..] = args.as_slice() else {
        return Err("race-furnace PORT ZOO [BATCH]".into());
    };
    let folder = Path::new(zoo).join("mlp/only");
    let loaded = switchyard_models::load_variant(&folder, &Device::Cpu)?;
    let samples = loaded.card.architecture.samples();
    let model = Model::custom(Perceptron { model: loaded.model, samples });
    let batch = rest.first().map_or(Ok(1), |batch| batch.parse())?;
    let port: u16 = port.parse()?;
    let server = Server::new().host("127.0.0.1").port(port).model(model);
    let server = server.configure(|config| config.grpc_port = Some(port + 1));
    server.max_batch_size(batch).serve().await?;
    Ok(())
}
