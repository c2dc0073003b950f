//! The types of `proto/`, made by `cargo xtask protobuf`.

pub mod etcd;
pub mod health;
pub mod inference;

#[cfg(test)]
mod tests {
    use flate2::Crc;

    /// The types carry the checksum of the proto file that they were made of.
    #[test]
    fn the_types_are_those_of_the_proto_files() {
        for (types, proto) in [
            (
                include_str!("messages/inference.rs"),
                include_str!("../../proto/inference.proto"),
            ),
            (
                include_str!("messages/health.rs"),
                include_str!("../../proto/health.proto"),
            ),
            (
                include_str!("messages/etcd.rs"),
                include_str!("../../proto/etcd.proto"),
            ),
        ] {
            let mut crc = Crc::new();
            crc.update(proto.as_bytes());
            let stamp = format!("(CRC {:08x})", crc.sum());
            let head = types.lines().next().unwrap_or_default();
            assert!(
                head.contains(&stamp),
                "{head}: the proto file is another one {stamp}; run `cargo xtask protobuf`"
            );
        }
    }
}
