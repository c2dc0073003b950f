//! The operators by domain and name.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::{
    cast, encode, features, lanes, layout, linear, matmul, pairs, reduce, scale, select, svm,
    svm_classifier, tree_classifier, tree_ensemble, tree_regressor, unary,
};

/// The domain of the operators of classic models.
pub(super) const ML: &str = "ai.onnx.ml";

/// The operator of a node.
///
/// # Errors
/// The operator is unknown, or an attribute has an unknown value; the text names both.
pub(super) fn operator(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let (domain, name) = (&*definition.node.domain, &*definition.node.op_type);
    let built = match domain {
        "" | "ai.onnx" => general(name, definition),
        ML => classic(name, definition),
        _ => None,
    };
    let domain = if domain.is_empty() { "ai.onnx" } else { domain };
    match built {
        Some(Ok(operator)) => Ok(operator),
        Some(Err(error)) => candle_core::bail!("operator {domain}.{name}: {error}"),
        None => candle_core::bail!("operator {domain}.{name} is unknown"),
    }
}

fn classic(name: &str, definition: Definition<'_>) -> Option<Result<Box<dyn Operator>>> {
    Some(match name {
        "ArrayFeatureExtractor" => features::array_feature_extractor(definition),
        "Binarizer" => scale::binarizer(definition),
        "CategoryMapper" => encode::category_mapper(definition),
        "FeatureVectorizer" => features::feature_vectorizer(definition),
        "Imputer" => scale::imputer(definition),
        "LabelEncoder" => encode::label_encoder(definition),
        "LinearClassifier" => linear::classifier(definition),
        "LinearRegressor" => linear::regressor(definition),
        "Normalizer" => scale::normalizer(definition),
        "OneHotEncoder" => encode::one_hot(definition),
        "SVMClassifier" => svm_classifier::classifier(definition),
        "SVMRegressor" => svm::regressor(definition),
        "Scaler" => scale::scaler(definition),
        "TreeEnsemble" => tree_ensemble::ensemble(definition),
        "TreeEnsembleClassifier" => tree_classifier::classifier(definition),
        "TreeEnsembleRegressor" => tree_regressor::regressor(definition),
        // Its answer is the tensor that it reads: maps cannot be sent.
        "ZipMap" => Ok(single(|inputs| Ok(inputs.at(0)?.clone()))),
        _ => return None,
    })
}

fn general(name: &str, definition: Definition<'_>) -> Option<Result<Box<dyn Operator>>> {
    Some(match name {
        "Abs" | "Ceil" | "Exp" | "Floor" | "Identity" | "IsNaN" | "Log" | "Neg" | "Not"
        | "Reciprocal" | "Relu" | "Round" | "Sigmoid" | "Sign" | "Softplus" | "Sqrt" | "Tanh" => {
            unary::unary(definition)
        }
        "Add" | "Div" | "Mod" | "Mul" | "Pow" | "Sub" => pairs::arithmetic(definition),
        "And" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "Or" | "Xor" => {
            pairs::comparison(definition)
        }
        "ArgMax" | "ArgMin" => lanes::position(definition),
        "Cast" => cast::cast(definition),
        "Clip" => unary::clip(definition),
        "Concat" => layout::concat(definition),
        "Constant" => select::constant(definition),
        "ConstantOfShape" => select::constant_of_shape(definition),
        "CumSum" => lanes::cumulative_sum(definition),
        "Expand" => select::expand(definition),
        "Flatten" => layout::flatten(definition),
        "Gather" => select::gather(definition),
        "GatherElements" => select::gather_elements(definition),
        "Gemm" => matmul::gemm(definition),
        "LogSoftmax" | "Softmax" => lanes::softmax(definition),
        "LpNormalization" => lanes::normalization(definition),
        "MatMul" => matmul::matmul(definition),
        "Max" | "Mean" | "Min" | "Sum" => pairs::variadic(definition),
        "ReduceL1" | "ReduceL2" | "ReduceLogSumExp" | "ReduceMax" | "ReduceMean" | "ReduceMin"
        | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" => reduce::reduce(definition),
        "Reshape" => layout::reshape(definition),
        "Shape" => layout::shape(definition),
        "Slice" => select::slice(definition),
        "Split" => layout::split(definition),
        "Squeeze" => layout::squeeze(definition),
        "Tile" => select::tile(definition),
        "TopK" => lanes::top_k(definition),
        "Transpose" => layout::transpose(definition),
        "Unsqueeze" => layout::unsqueeze(definition),
        "Where" => unary::condition(definition),
        _ => return None,
    })
}
