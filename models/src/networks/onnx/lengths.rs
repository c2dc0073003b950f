//! The messages of a file: each field ends within its message, and there is one graph. The engine inside this
//! program reserves memory for a length before it looks for the bytes, which would end the process.

use super::fields::{Kind, fields};

/// Graphs inside of graphs, with the messages between them.
const DEPTH_MAX: u32 = 64;

/// # Errors
/// The first message with a field that does not fit.
pub(super) fn check(file: &[u8]) -> Result<(), String> {
    message(file, Kind::Model, 0)?;
    let mut graphs = 0;
    for field in fields(file) {
        graphs += usize::from(field?.message(Kind::Model) == Some(Kind::Graph));
    }
    // Readers would join them, or take either one.
    match graphs {
        0 | 1 => Ok(()),
        _ => Err(format!("it has {graphs} graphs, a model has one")),
    }
}

fn message(bytes: &[u8], kind: Kind, depth: u32) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("messages are nested more than {DEPTH_MAX} deep"));
    }
    for field in fields(bytes) {
        let field = field?;
        if let Some(inside) = field.message(kind) {
            message(field.content, inside, depth + 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_ends_within_its_message() {
        // A model with a graph with a node with a name of 3 bytes.
        let file = [0x3a, 7, 0x0a, 5, 0x1a, 3, b'a', b'b', b'c'];
        assert_eq!(check(&file), Ok(()));
        for (at, length) in [(1, 8), (3, 6), (5, 4)] {
            let mut long = file.to_vec();
            long[at] = length;
            let error = check(&long).unwrap_err();
            assert!(error.contains("longer than its message"), "{at}: {error}");
        }
        let error = check(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0x7f]).unwrap_err();
        assert!(error.contains("longer than its message"), "{error}");
    }

    #[test]
    fn a_model_has_one_graph() {
        assert_eq!(check(&[0x3a, 0]), Ok(()));
        let error = check(&[0x3a, 0, 0x3a, 0]).unwrap_err();
        assert_eq!(error, "it has 2 graphs, a model has one");
    }

    #[test]
    fn graphs_are_not_nested_without_an_end() {
        let mut graph = Vec::new();
        for _ in 0..200 {
            for field in [0x32, 0x2a, 0x0a] {
                let mut around = vec![field];
                prost::encoding::encode_varint(graph.len() as u64, &mut around);
                around.extend(&graph);
                graph = around;
            }
        }
        let mut file = vec![0x3a];
        prost::encoding::encode_varint(graph.len() as u64, &mut file);
        file.extend(graph);
        assert!(check(&file).unwrap_err().contains("nested"));
    }
}
