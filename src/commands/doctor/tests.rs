use super::*;
use crate::arguments::{Arguments, Command};
use clap::Parser as _;

/// A machine with this configuration and nothing else set.
fn machine(toml: &str) -> (tempfile::TempDir, Result<Machine, Vec<Finding>>) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("config.toml");
    std::fs::write(&file, toml).unwrap();
    let project = place.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let sources = Sources {
        config_file: Some(file),
        home: Some(place.path().to_owned()),
        working_directory: project,
        ..Sources::default()
    };
    let machine = config::load(&sources)
        .map(|loaded| Machine {
            providers: Providers::new(&loaded.config),
            clients: Clients::default(),
            sources,
            loaded,
        })
        .map_err(|errors| errors.iter().map(unreadable).collect());
    (place, machine)
}

#[test]
fn the_command_line_names_it() {
    let arguments = Arguments::try_parse_from(["outrigger", "doctor", "--json"]).unwrap();
    assert!(matches!(arguments.into_command(), Command::Doctor(it) if it.json));
}

#[test]
fn each_error_of_the_configuration_is_a_finding() {
    let (_place, machine) = machine("[server]\nprot = 1\nhost = \"nowhere at all\"\n");
    let findings = machine.err().unwrap();
    let text = finding::text(&findings);
    assert!(text.contains("server.prot"), "{text}");
    assert!(text.contains("server.host"), "{text}");
    assert!(!finding::is_well(&findings));
}

#[test]
fn a_project_that_is_there_is_well() {
    let (_place, machine) = machine("");
    let findings = place::project(&machine.unwrap());
    assert!(finding::is_well(&findings), "{findings:?}");
    assert_eq!(findings.len(), 2);
}

#[test]
fn a_port_in_use_by_something_else_is_a_failure() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    // Whoever connects is told at once that this is no daemon.
    let answering = std::thread::spawn(move || drop(taken.accept()));
    let (_place, machine) = machine(&format!("[server]\nport = {port}\n"));
    let findings = place::port(&machine.unwrap());
    answering.join().unwrap();
    let text = finding::text(&findings);
    assert!(
        text.starts_with("failed") && text.contains("--port"),
        "{text}"
    );
}

#[test]
fn a_program_of_an_mcp_server_that_is_missing_is_a_failure() {
    let (_place, machine) = machine("[mcp.servers.time]\ncommand = \"no-such-program\"\n");
    let findings = place::programs(&machine.unwrap());
    let text = finding::text(&findings);
    assert!(
        text.contains("time: there is no program `no-such-program`"),
        "{text}"
    );
    assert!(!finding::is_well(&findings));
}

#[tokio::test]
async fn without_a_provider_the_demonstration_answers() {
    let (_place, machine) = machine("");
    let findings = providers::providers(&machine.unwrap()).await;
    let text = finding::text(&findings);
    assert!(text.contains("ANTHROPIC_API_KEY"), "{text}");
    assert!(finding::is_well(&findings));
}
