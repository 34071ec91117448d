//! A running exchange as clients of its catalog see it: imports, reads and walks over pages.

use crate::common::exchange::{Exchange, Plan, said};
use crate::common::folder;
use crate::common::wire::{Answer, Connection};
use serde_json::Value;
use std::path::Path;

pub struct Site {
    pub exchange: Exchange,
    pub connection: Connection,
    _folder: tempfile::TempDir,
}

impl Site {
    /// `outcry dev` without sample flow.
    pub fn dev() -> Self {
        let folder = folder();
        let exchange = Plan::dev(folder.path()).start();
        let connection = exchange.connect();
        Self { exchange, connection, _folder: folder }
    }

    /// The same data after a stop and a start.
    pub fn restarted(self) -> Self {
        let Self { exchange, connection, _folder: folder } = self;
        drop(connection);
        exchange.stop();
        let exchange = Plan::dev(folder.path()).start();
        let connection = exchange.connect();
        Self { exchange, connection, _folder: folder }
    }

    /// Imports a file; returns whether all of it was taken, and what the command printed.
    pub fn import_file(&self, file: &Path) -> (bool, String) {
        let output = self.exchange.operator_output(&["import", "gamma", file.to_str().unwrap()]);
        (output.status.success(), said(&output))
    }

    /// Imports rows.
    #[track_caller]
    pub fn import(&self, rows: &Value) -> (bool, String) {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::write(file.path(), rows.to_string()).unwrap();
        self.import_file(file.path())
    }

    #[track_caller]
    pub fn read(&mut self, path: &str) -> Value {
        self.connection.read(path)
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.connection.request("GET", path, "", b"").unwrap()
    }

    /// Every row of a list, page by page; `path` ends in `?` or `&`.
    #[track_caller]
    pub fn walk(&mut self, path: &str, limit: usize) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let page = self.read(&format!("{path}limit={limit}&offset={}", all.len()));
            let rows = page.as_array().unwrap();
            all.extend(rows.iter().cloned());
            if rows.len() < limit {
                return all;
            }
        }
    }
}
