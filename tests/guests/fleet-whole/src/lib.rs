//! Windows show all workers; `fleet` has the logic.

switchyard_sdk::export_policy!(fleet::Fleet<false>);
