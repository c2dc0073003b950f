//! Ranges of stages as parameters of an inference.

use std::collections::BTreeMap;

use super::messages::inference::InferParameter;
use super::messages::inference::infer_parameter::ParameterChoice;
use crate::error::ProtocolError;
use crate::excerpt::excerpt;
use crate::stages::{StageCall, StageWork};

/// The session of a request with a range of stages.
const SESSION: &str = "switchyard_session";
/// The numbers of the rows, with commas.
const ROWS: &str = "switchyard_rows";
/// First stage, 0 by default.
const FROM_STAGE: &str = "switchyard_from_stage";
/// One past the last stage; without it the batch runs to the exit of its version.
const TO_STAGE: &str = "switchyard_to_stage";
/// True: the activations are forgotten, and nothing runs.
const RELEASE: &str = "switchyard_release";

/// The parameters of a call.
pub fn stage_parameters(call: &StageCall) -> BTreeMap<String, InferParameter> {
    let rows: Vec<String> = call.rows.iter().map(u64::to_string).collect();
    let mut parameters = BTreeMap::new();
    let mut add = |name: &str, value: ParameterChoice| {
        let parameter_choice = Some(value);
        parameters.insert(name.to_owned(), InferParameter { parameter_choice });
    };
    add(SESSION, ParameterChoice::Uint64Param(call.session));
    add(ROWS, ParameterChoice::StringParam(rows.join(",")));
    match call.work {
        StageWork::Park {
            from_stage,
            to_stage,
        } => {
            add(FROM_STAGE, ParameterChoice::Int64Param(from_stage.into()));
            add(TO_STAGE, ParameterChoice::Int64Param(to_stage.into()));
        }
        StageWork::Answer { from_stage } => {
            add(FROM_STAGE, ParameterChoice::Int64Param(from_stage.into()));
        }
        StageWork::Release => add(RELEASE, ParameterChoice::BoolParam(true)),
    }
    parameters
}

/// Takes the parameters of a range of stages out of those of a request; `None` if it has no session.
///
/// # Errors
/// One has a wrong value.
pub fn take_stages(
    parameters: &mut BTreeMap<String, InferParameter>,
) -> Result<Option<StageCall>, ProtocolError> {
    if !parameters.contains_key(SESSION) {
        return Ok(None);
    }
    let mut of = |name: &str| parameters.remove(name)?.parameter_choice;
    let Some(ParameterChoice::Uint64Param(session)) = of(SESSION) else {
        return Err(wrong(SESSION, "must be a uint64_param"));
    };
    let rows = match of(ROWS) {
        Some(ParameterChoice::StringParam(rows)) => numbers(&rows)?,
        _ => return Err(wrong(ROWS, "must be a string_param, such as \"7,8\"")),
    };
    let release = match of(RELEASE) {
        None => false,
        Some(ParameterChoice::BoolParam(release)) => release,
        Some(_) => return Err(wrong(RELEASE, "must be a bool_param")),
    };
    let from_stage = stage(FROM_STAGE, of(FROM_STAGE))?.unwrap_or(0);
    let work = match (release, stage(TO_STAGE, of(TO_STAGE))?) {
        (true, _) => StageWork::Release,
        (false, Some(to_stage)) => StageWork::Park {
            from_stage,
            to_stage,
        },
        (false, None) if from_stage > 0 => StageWork::Answer { from_stage },
        (false, None) => {
            let reason = format!("is missing; give it, or {FROM_STAGE} from 1 on");
            return Err(wrong(TO_STAGE, &reason));
        }
    };
    Ok(Some(StageCall {
        session,
        rows,
        work,
    }))
}

fn numbers(text: &str) -> Result<Vec<u64>, ProtocolError> {
    let rows: Result<Vec<u64>, _> = text.split(',').map(str::parse).collect();
    rows.map_err(|_| {
        let found = excerpt(text);
        wrong(ROWS, &format!("{found:?}, must be numbers such as \"7,8\""))
    })
}

fn stage(name: &str, value: Option<ParameterChoice>) -> Result<Option<u32>, ProtocolError> {
    let stage = match value {
        None => return Ok(None),
        Some(ParameterChoice::Int64Param(stage)) => u32::try_from(stage).ok(),
        Some(_) => None,
    };
    let reason = "must be an int64_param from 0 on";
    stage.map(Some).ok_or_else(|| wrong(name, reason))
}

fn wrong(name: &str, reason: &str) -> ProtocolError {
    ProtocolError::malformed(format!("parameters.{name}"), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_comes_back_and_other_parameters_stay() {
        let works = [
            StageWork::Park {
                from_stage: 0,
                to_stage: 2,
            },
            StageWork::Park {
                from_stage: 2,
                to_stage: 3,
            },
            StageWork::Answer { from_stage: 3 },
            StageWork::Release,
        ];
        for work in works {
            let call = StageCall {
                session: u64::MAX,
                rows: vec![7, u64::MAX],
                work,
            };
            let mut parameters = stage_parameters(&call);
            parameters.insert("timeout".to_owned(), InferParameter::default());
            assert_eq!(take_stages(&mut parameters), Ok(Some(call)));
            assert_eq!(parameters.len(), 1);
            assert_eq!(take_stages(&mut parameters), Ok(None));
        }
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let call = StageCall {
            session: 1,
            rows: vec![7],
            work: StageWork::Answer { from_stage: 1 },
        };
        for (name, value, part) in [
            (SESSION, ParameterChoice::Int64Param(1), "uint64_param"),
            (
                ROWS,
                ParameterChoice::StringParam("7,".to_owned()),
                "\"7,\"",
            ),
            (FROM_STAGE, ParameterChoice::Int64Param(-1), "from 0 on"),
            (FROM_STAGE, ParameterChoice::Int64Param(0), "is missing"),
            (RELEASE, ParameterChoice::Int64Param(1), "bool_param"),
        ] {
            let mut parameters = stage_parameters(&call);
            let parameter_choice = Some(value);
            parameters.insert(name.to_owned(), InferParameter { parameter_choice });
            let error = take_stages(&mut parameters).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
