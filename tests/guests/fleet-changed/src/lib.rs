//! Windows show only the workers that changed; `fleet` has the logic.

switchyard_sdk::export_policy!(fleet::Fleet<true>);
