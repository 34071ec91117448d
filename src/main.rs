//! The `outcry` command.

fn main() -> std::process::ExitCode {
    outcry::server::run()
}
