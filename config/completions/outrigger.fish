# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_outrigger_global_optspecs
    string join \n config= project-root= project-name= host= port= token-file= token-stdin ready-file= ready= parent-pid= allow-origin= log-format= require-sandbox= record= h/help V/version
end

function __fish_outrigger_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_outrigger_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_outrigger_using_subcommand
    set -l cmd (__fish_outrigger_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c outrigger -n "__fish_outrigger_needs_command" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_needs_command" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_needs_command" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_needs_command" -l host -d 'IP address to listen on, or localhost [default: 127.0.0.1]' -r
complete -c outrigger -n "__fish_outrigger_needs_command" -l port -d 'Port to listen on; 0 takes a free one [default: 4517]' -r
complete -c outrigger -n "__fish_outrigger_needs_command" -l token-file -d 'Read the token from a file' -r -F
complete -c outrigger -n "__fish_outrigger_needs_command" -l ready-file -d 'Write the ready line to a file too (mode 0600, removed on exit)' -r -F
complete -c outrigger -n "__fish_outrigger_needs_command" -l ready -d 'What is printed when it is ready [default: text on a terminal, else json]' -r -f -a "text\t'Lines for a person'
json\t'One line of JSON for a program'"
complete -c outrigger -n "__fish_outrigger_needs_command" -l parent-pid -d 'End when the process with this id ends' -r
complete -c outrigger -n "__fish_outrigger_needs_command" -l allow-origin -d 'Accept this browser origin too (may be given several times; replaces the file\'s)' -r
complete -c outrigger -n "__fish_outrigger_needs_command" -l log-format -d 'Form of the log on stderr [default: human on a terminal, else json]' -r -f -a "human\t'For people'
json\t'One JSON object a line'"
complete -c outrigger -n "__fish_outrigger_needs_command" -l require-sandbox -d 'Refuse to start where commands cannot be sandboxed at least so well' -r -f -a "full\t'Namespaces, Landlock and seccomp'
fallback\t'What works without namespaces'"
complete -c outrigger -n "__fish_outrigger_needs_command" -l record -d 'Record each exchange with a provider into this directory' -r -F
complete -c outrigger -n "__fish_outrigger_needs_command" -l token-stdin -d 'Read the token from the first line of stdin'
complete -c outrigger -n "__fish_outrigger_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c outrigger -n "__fish_outrigger_needs_command" -s V -l version -d 'Print version'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "serve" -d 'Run the daemon (the default)'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "chat" -d 'Chat in the terminal, with a daemon of its own unless --url names one'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "acp" -d 'Serve an editor on stdin and stdout, as an agent of the Agent Client Protocol'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "run" -d 'Ask one thing without a terminal, for scripts and pipelines; questions are refused'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "doctor" -d 'Check what the daemon needs on this machine and say what is missing'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "schema" -d 'Write the protocol as JSON Schema, TypeScript and AsyncAPI, and the configuration\'s JSON Schema'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "config" -d 'Look at the configuration'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "sessions" -d 'Look at the sessions that are kept, write them to files and read them back'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "admin" -d 'Ask a running daemon who works where, what runs and what it costs, or have it end in order'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "token" -d 'Make tokens for users, and the key that they are signed with'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "healthcheck" -d 'Ask a running daemon whether it is alive (exit code 0 or 1)'
complete -c outrigger -n "__fish_outrigger_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l host -d 'IP address to listen on, or localhost [default: 127.0.0.1]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l port -d 'Port to listen on; 0 takes a free one [default: 4517]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l token-file -d 'Read the token from a file' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l ready-file -d 'Write the ready line to a file too (mode 0600, removed on exit)' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l ready -d 'What is printed when it is ready [default: text on a terminal, else json]' -r -f -a "text\t'Lines for a person'
json\t'One line of JSON for a program'"
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l parent-pid -d 'End when the process with this id ends' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l allow-origin -d 'Accept this browser origin too (may be given several times; replaces the file\'s)' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l log-format -d 'Form of the log on stderr [default: human on a terminal, else json]' -r -f -a "human\t'For people'
json\t'One JSON object a line'"
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l require-sandbox -d 'Refuse to start where commands cannot be sandboxed at least so well' -r -f -a "full\t'Namespaces, Landlock and seccomp'
fallback\t'What works without namespaces'"
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l record -d 'Record each exchange with a provider into this directory' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -l token-stdin -d 'Read the token from the first line of stdin'
complete -c outrigger -n "__fish_outrigger_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l resume -d 'Go on in this session: its id, or as much of its beginning as no other has' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l url -d 'Address of a running daemon: its page\'s, e.g. http://127.0.0.1:4517, or its WebSocket\'s (ws://, or wss:// behind a proxy)' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l token-file -d 'Read the running daemon\'s token from a file [default: OUTRIGGER_TOKEN]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l provider -d 'Provider instance' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l model -d 'Model' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l trust-level -d 'How much is done without asking' -r -f -a "supervised\t'Every call is asked for'
guided\t'What can change something is asked for'
autonomous\t'Only what goes beyond the scope is asked for'"
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l workflow -d 'Workflow' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -l continue -d 'Go on in the last session of this project'
complete -c outrigger -n "__fish_outrigger_using_subcommand chat" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c outrigger -n "__fish_outrigger_using_subcommand acp" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand acp" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand acp" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand acp" -l log-format -d 'Form of the log on stderr [default: human on a terminal, else json]' -r -f -a "human\t'For people'
json\t'One JSON object a line'"
complete -c outrigger -n "__fish_outrigger_using_subcommand acp" -l record -d 'Record each exchange with a provider into this directory' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand acp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l output-schema -d 'A file with the JSON schema of an object: the answer is one that fits it, as JSON, or none' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l url -d 'Address of a running daemon: its page\'s, e.g. http://127.0.0.1:4517, or its WebSocket\'s (ws://, or wss:// behind a proxy)' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l token-file -d 'Read the running daemon\'s token from a file [default: OUTRIGGER_TOKEN]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l provider -d 'Provider instance' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l model -d 'Model' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l trust-level -d 'How much is done without asking' -r -f -a "supervised\t'Every call is asked for'
guided\t'What can change something is asked for'
autonomous\t'Only what goes beyond the scope is asked for'"
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l workflow -d 'Workflow' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -l json -d 'Print each event as a line of JSON in the place of the answer'
complete -c outrigger -n "__fish_outrigger_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c outrigger -n "__fish_outrigger_using_subcommand doctor" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand doctor" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand doctor" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand doctor" -l port -d 'Port that the daemon is to listen on [default: 4517]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand doctor" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand doctor" -l apparmor-profile -d 'Print the profile of AppArmor that mode `full` takes on Ubuntu 24.04, and check nothing'
complete -c outrigger -n "__fish_outrigger_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand schema" -l out -d 'Directory to write into; made where it is not there' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand schema" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and not __fish_seen_subcommand_from show help" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and not __fish_seen_subcommand_from show help" -f -a "show" -d 'Print each value with where it came from, secrets masked'
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and not __fish_seen_subcommand_from show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and __fish_seen_subcommand_from show" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and __fish_seen_subcommand_from show" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print each value with where it came from, secrets masked'
complete -c outrigger -n "__fish_outrigger_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "list" -d 'List them, the one that changed last first'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "search" -d 'Find those in which words were said; each word has to be there, the last one perhaps as a beginning'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "show" -d 'Print what was said in one'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "export" -d 'Write one as JSON lines, which `import` reads, or as Markdown'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "import" -d 'Make a new session of a file that was exported as JSON lines, and print its id'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "delete" -d 'Delete sessions for good'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "stats" -d 'Print how much is kept'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "backup" -d 'Write a copy of all that is kept to a new file; also while a daemon runs'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "vacuum" -d 'Write the store anew, as small as it can be'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and not __fish_seen_subcommand_from list search show export import delete stats backup vacuum help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l label -d 'Only those with this label (may be given several times)' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l project -d 'Only those that work in this folder' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l limit -d 'At most so many' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l archived -d 'Those that were put away, instead of the others'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l label -d 'Only those with this label (may be given several times)' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l project -d 'Only those that work in this folder' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l limit -d 'At most so many' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l archived -d 'Those that were put away, instead of the others'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from search" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from show" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from show" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from show" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from export" -l format -d 'As what' -r -f -a "jsonl\t'JSON lines, of which `session:import` makes the session again'
markdown\t'Markdown, for people; without attachments'"
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from export" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from export" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from export" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from import" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from import" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from import" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from delete" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from delete" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from delete" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from stats" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from stats" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from stats" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from stats" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from backup" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from backup" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from backup" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from backup" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from vacuum" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from vacuum" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from vacuum" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from vacuum" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "list" -d 'List them, the one that changed last first'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "search" -d 'Find those in which words were said; each word has to be there, the last one perhaps as a beginning'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print what was said in one'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "export" -d 'Write one as JSON lines, which `import` reads, or as Markdown'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "import" -d 'Make a new session of a file that was exported as JSON lines, and print its id'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete sessions for good'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "stats" -d 'Print how much is kept'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "backup" -d 'Write a copy of all that is kept to a new file; also while a daemon runs'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "vacuum" -d 'Write the store anew, as small as it can be'
complete -c outrigger -n "__fish_outrigger_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and not __fish_seen_subcommand_from sessions users nodes drain help" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and not __fish_seen_subcommand_from sessions users nodes drain help" -f -a "sessions" -d 'List the sessions that live: whose, where, how they stand, what they cost'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and not __fish_seen_subcommand_from sessions users nodes drain help" -f -a "users" -d 'List the users with sessions that live'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and not __fish_seen_subcommand_from sessions users nodes drain help" -f -a "nodes" -d 'List the nodes: how many sessions each has, and whether it takes new ones'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and not __fish_seen_subcommand_from sessions users nodes drain help" -f -a "drain" -d 'Have the daemon take nothing new, wait for what runs, and end'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and not __fish_seen_subcommand_from sessions users nodes drain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from sessions" -l url -d 'The daemon\'s address, e.g. http://127.0.0.1:4517 [default: the configuration\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from sessions" -l token-file -d 'Read the daemon\'s token from a file [default: OUTRIGGER_TOKEN]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from sessions" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from sessions" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from sessions" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from sessions" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from sessions" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from users" -l url -d 'The daemon\'s address, e.g. http://127.0.0.1:4517 [default: the configuration\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from users" -l token-file -d 'Read the daemon\'s token from a file [default: OUTRIGGER_TOKEN]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from users" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from users" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from users" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from users" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from users" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from nodes" -l url -d 'The daemon\'s address, e.g. http://127.0.0.1:4517 [default: the configuration\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from nodes" -l token-file -d 'Read the daemon\'s token from a file [default: OUTRIGGER_TOKEN]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from nodes" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from nodes" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from nodes" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from nodes" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from nodes" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l within -d 'How long what runs may take, e.g. 30s or 10m, up to a day [default: the daemon\'s shutdown.grace]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l url -d 'The daemon\'s address, e.g. http://127.0.0.1:4517 [default: the configuration\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l token-file -d 'Read the daemon\'s token from a file [default: OUTRIGGER_TOKEN]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l no-wait -d 'Return at once, instead of when the daemon has ended'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -l json -d 'Print JSON'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from drain" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "sessions" -d 'List the sessions that live: whose, where, how they stand, what they cost'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "users" -d 'List the users with sessions that live'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "nodes" -d 'List the nodes: how many sessions each has, and whether it takes new ones'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "drain" -d 'Have the daemon take nothing new, wait for what runs, and end'
complete -c outrigger -n "__fish_outrigger_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and not __fish_seen_subcommand_from key create help" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and not __fish_seen_subcommand_from key create help" -f -a "key" -d 'Print the public half of a private key, for auth.jwt.keys; the key is made where there is none'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and not __fish_seen_subcommand_from key create help" -f -a "create" -d 'Print a token for a user, signed with a private key'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and not __fish_seen_subcommand_from key create help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from key" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l key -d 'The private key that it is signed with' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l sub -d 'The user\'s name' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l ttl -d 'How long it holds, e.g. 8h' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l role -d 'What its sockets may do' -r -f -a "observer\t'They look on'
approver\t'They answer questions, too'
driver\t'They do everything in the user\'s own sessions'
operator\t'The same, and what is about the daemon'"
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l root -d 'A folder below which its projects are, absolute; may be given several times [default: those of project.allowed]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l trust -d 'The most that is done without asking [default: what the configuration allows]' -r -f -a "supervised\t'Every call is asked for'
guided\t'What can change something is asked for'
autonomous\t'Only what goes beyond the scope is asked for'"
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l budget -d 'US dollars that the user may spend in a day [default: budget.user_day]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l disk -d 'How much the user may keep, e.g. 500MiB [default: auth.limits.disk]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l iss -d 'Who makes it, for auth.jwt.issuer' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l aud -d 'Which daemon it is for, for auth.jwt.audience' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -l jti -d 'Its own name, by which it can be taken back [default: a random one]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "key" -d 'Print the public half of a private key, for auth.jwt.keys; the key is made where there is none'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "create" -d 'Print a token for a user, signed with a private key'
complete -c outrigger -n "__fish_outrigger_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand healthcheck" -l url -d 'The daemon\'s address, e.g. http://127.0.0.1:4517 [default: the configuration\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand healthcheck" -l port -d 'Port of the daemon on this machine [default: the configuration\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand healthcheck" -l config -d 'Configuration file (.toml, .yaml or .json) in the place of the user\'s' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand healthcheck" -l project-root -d 'The folder the model works in [default: the working directory]' -r -F
complete -c outrigger -n "__fish_outrigger_using_subcommand healthcheck" -l project-name -d 'The project\'s name [default: the folder\'s]' -r
complete -c outrigger -n "__fish_outrigger_using_subcommand healthcheck" -s h -l help -d 'Print help'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "serve" -d 'Run the daemon (the default)'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "chat" -d 'Chat in the terminal, with a daemon of its own unless --url names one'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "acp" -d 'Serve an editor on stdin and stdout, as an agent of the Agent Client Protocol'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "run" -d 'Ask one thing without a terminal, for scripts and pipelines; questions are refused'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "doctor" -d 'Check what the daemon needs on this machine and say what is missing'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "schema" -d 'Write the protocol as JSON Schema, TypeScript and AsyncAPI, and the configuration\'s JSON Schema'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "config" -d 'Look at the configuration'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "sessions" -d 'Look at the sessions that are kept, write them to files and read them back'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "admin" -d 'Ask a running daemon who works where, what runs and what it costs, or have it end in order'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "token" -d 'Make tokens for users, and the key that they are signed with'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "healthcheck" -d 'Ask a running daemon whether it is alive (exit code 0 or 1)'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and not __fish_seen_subcommand_from serve chat acp run doctor schema config sessions admin token healthcheck help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "show" -d 'Print each value with where it came from, secrets masked'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "list" -d 'List them, the one that changed last first'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "search" -d 'Find those in which words were said; each word has to be there, the last one perhaps as a beginning'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "show" -d 'Print what was said in one'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "export" -d 'Write one as JSON lines, which `import` reads, or as Markdown'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "import" -d 'Make a new session of a file that was exported as JSON lines, and print its id'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "delete" -d 'Delete sessions for good'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "stats" -d 'Print how much is kept'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "backup" -d 'Write a copy of all that is kept to a new file; also while a daemon runs'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "vacuum" -d 'Write the store anew, as small as it can be'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "sessions" -d 'List the sessions that live: whose, where, how they stand, what they cost'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "users" -d 'List the users with sessions that live'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "nodes" -d 'List the nodes: how many sessions each has, and whether it takes new ones'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "drain" -d 'Have the daemon take nothing new, wait for what runs, and end'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "key" -d 'Print the public half of a private key, for auth.jwt.keys; the key is made where there is none'
complete -c outrigger -n "__fish_outrigger_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "create" -d 'Print a token for a user, signed with a private key'
