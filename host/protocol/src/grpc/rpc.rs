//! The calls of the gRPC port.

use crate::error::ProtocolError;

/// Begin of the content type of every gRPC request.
pub const CONTENT_TYPE_PREFIX: &[u8] = b"application/grpc";

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the services")]
pub enum Rpc {
    ServerLive,
    ServerReady,
    ModelReady,
    ServerMetadata,
    ModelMetadata,
    ModelInfer,
    ModelStreamInfer,
    ModelConfig,
    ModelStatistics,
    RepositoryIndex,
    RepositoryModelLoad,
    RepositoryModelUnload,
    HealthCheck,
    HealthWatch,
}

/// Every call and its path.
const PATHS: [(&str, Rpc); 14] = [
    (
        "/inference.GRPCInferenceService/ModelInfer",
        Rpc::ModelInfer,
    ),
    (
        "/inference.GRPCInferenceService/ModelStreamInfer",
        Rpc::ModelStreamInfer,
    ),
    (
        "/inference.GRPCInferenceService/ServerLive",
        Rpc::ServerLive,
    ),
    (
        "/inference.GRPCInferenceService/ServerReady",
        Rpc::ServerReady,
    ),
    (
        "/inference.GRPCInferenceService/ModelReady",
        Rpc::ModelReady,
    ),
    (
        "/inference.GRPCInferenceService/ServerMetadata",
        Rpc::ServerMetadata,
    ),
    (
        "/inference.GRPCInferenceService/ModelMetadata",
        Rpc::ModelMetadata,
    ),
    (
        "/inference.GRPCInferenceService/ModelConfig",
        Rpc::ModelConfig,
    ),
    (
        "/inference.GRPCInferenceService/ModelStatistics",
        Rpc::ModelStatistics,
    ),
    (
        "/inference.GRPCInferenceService/RepositoryIndex",
        Rpc::RepositoryIndex,
    ),
    (
        "/inference.GRPCInferenceService/RepositoryModelLoad",
        Rpc::RepositoryModelLoad,
    ),
    (
        "/inference.GRPCInferenceService/RepositoryModelUnload",
        Rpc::RepositoryModelUnload,
    ),
    ("/grpc.health.v1.Health/Check", Rpc::HealthCheck),
    ("/grpc.health.v1.Health/Watch", Rpc::HealthWatch),
];

impl Rpc {
    /// Its path.
    pub fn path(self) -> &'static str {
        let found = PATHS.iter().find(|(_, known)| *known == self);
        found.map_or("", |(path, _)| path)
    }

    /// The call of a path.
    ///
    /// # Errors
    /// The port has no such call.
    pub fn of(path: &str) -> Result<Self, ProtocolError> {
        let found = PATHS.iter().find(|(known, _)| *known == path);
        found
            .map(|(_, rpc)| *rpc)
            .ok_or_else(|| ProtocolError::UnknownCall {
                path: path.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_the_proto_files_has_its_path() {
        let mut calls = 0;
        for (service, proto) in [
            (
                "inference.GRPCInferenceService",
                include_str!("../../proto/inference.proto"),
            ),
            (
                "grpc.health.v1.Health",
                include_str!("../../proto/health.proto"),
            ),
        ] {
            for line in proto
                .lines()
                .filter_map(|line| line.trim().strip_prefix("rpc "))
            {
                let name = line.split('(').next().unwrap_or_default();
                let path = format!("/{service}/{name}");
                assert_eq!(Rpc::of(&path).map(Rpc::path), Ok(&*path));
                calls += 1;
            }
        }
        assert_eq!(calls, PATHS.len());
        let unknown = Rpc::of("/inference.GRPCInferenceService/TraceSetting").unwrap_err();
        assert!(unknown.to_string().contains("TraceSetting"), "{unknown}");
    }
}
