
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'outrigger' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'outrigger'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'outrigger' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'IP address to listen on, or localhost [default: 127.0.0.1]')
            [CompletionResult]::new('--port', '--port', [CompletionResultType]::ParameterName, 'Port to listen on; 0 takes a free one [default: 4517]')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the token from a file')
            [CompletionResult]::new('--ready-file', '--ready-file', [CompletionResultType]::ParameterName, 'Write the ready line to a file too (mode 0600, removed on exit)')
            [CompletionResult]::new('--ready', '--ready', [CompletionResultType]::ParameterName, 'What is printed when it is ready [default: text on a terminal, else json]')
            [CompletionResult]::new('--parent-pid', '--parent-pid', [CompletionResultType]::ParameterName, 'End when the process with this id ends')
            [CompletionResult]::new('--allow-origin', '--allow-origin', [CompletionResultType]::ParameterName, 'Accept this browser origin too (may be given several times; replaces the file''s)')
            [CompletionResult]::new('--log-format', '--log-format', [CompletionResultType]::ParameterName, 'Form of the log on stderr [default: human on a terminal, else json]')
            [CompletionResult]::new('--require-sandbox', '--require-sandbox', [CompletionResultType]::ParameterName, 'Refuse to start where commands cannot be sandboxed at least so well')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Record each exchange with a provider into this directory')
            [CompletionResult]::new('--token-stdin', '--token-stdin', [CompletionResultType]::ParameterName, 'Read the token from the first line of stdin')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Run the daemon (the default)')
            [CompletionResult]::new('chat', 'chat', [CompletionResultType]::ParameterValue, 'Chat in the terminal, with a daemon of its own unless --url names one')
            [CompletionResult]::new('acp', 'acp', [CompletionResultType]::ParameterValue, 'Serve an editor on stdin and stdout, as an agent of the Agent Client Protocol')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Ask one thing without a terminal, for scripts and pipelines; questions are refused')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check what the daemon needs on this machine and say what is missing')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Write the protocol as JSON Schema, TypeScript and AsyncAPI, and the configuration''s JSON Schema')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Look at the configuration')
            [CompletionResult]::new('sessions', 'sessions', [CompletionResultType]::ParameterValue, 'Look at the sessions that are kept, write them to files and read them back')
            [CompletionResult]::new('admin', 'admin', [CompletionResultType]::ParameterValue, 'Ask a running daemon who works where, what runs and what it costs, or have it end in order')
            [CompletionResult]::new('token', 'token', [CompletionResultType]::ParameterValue, 'Make tokens for users, and the key that they are signed with')
            [CompletionResult]::new('healthcheck', 'healthcheck', [CompletionResultType]::ParameterValue, 'Ask a running daemon whether it is alive (exit code 0 or 1)')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;serve' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'IP address to listen on, or localhost [default: 127.0.0.1]')
            [CompletionResult]::new('--port', '--port', [CompletionResultType]::ParameterName, 'Port to listen on; 0 takes a free one [default: 4517]')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the token from a file')
            [CompletionResult]::new('--ready-file', '--ready-file', [CompletionResultType]::ParameterName, 'Write the ready line to a file too (mode 0600, removed on exit)')
            [CompletionResult]::new('--ready', '--ready', [CompletionResultType]::ParameterName, 'What is printed when it is ready [default: text on a terminal, else json]')
            [CompletionResult]::new('--parent-pid', '--parent-pid', [CompletionResultType]::ParameterName, 'End when the process with this id ends')
            [CompletionResult]::new('--allow-origin', '--allow-origin', [CompletionResultType]::ParameterName, 'Accept this browser origin too (may be given several times; replaces the file''s)')
            [CompletionResult]::new('--log-format', '--log-format', [CompletionResultType]::ParameterName, 'Form of the log on stderr [default: human on a terminal, else json]')
            [CompletionResult]::new('--require-sandbox', '--require-sandbox', [CompletionResultType]::ParameterName, 'Refuse to start where commands cannot be sandboxed at least so well')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Record each exchange with a provider into this directory')
            [CompletionResult]::new('--token-stdin', '--token-stdin', [CompletionResultType]::ParameterName, 'Read the token from the first line of stdin')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'outrigger;chat' {
            [CompletionResult]::new('--resume', '--resume', [CompletionResultType]::ParameterName, 'Go on in this session: its id, or as much of its beginning as no other has')
            [CompletionResult]::new('--url', '--url', [CompletionResultType]::ParameterName, 'Address of a running daemon: its page''s, e.g. http://127.0.0.1:4517, or its WebSocket''s (ws://, or wss:// behind a proxy)')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the running daemon''s token from a file [default: OUTRIGGER_TOKEN]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'Provider instance')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Model')
            [CompletionResult]::new('--trust-level', '--trust-level', [CompletionResultType]::ParameterName, 'How much is done without asking')
            [CompletionResult]::new('--workflow', '--workflow', [CompletionResultType]::ParameterName, 'Workflow')
            [CompletionResult]::new('--continue', '--continue', [CompletionResultType]::ParameterName, 'Go on in the last session of this project')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'outrigger;acp' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--log-format', '--log-format', [CompletionResultType]::ParameterName, 'Form of the log on stderr [default: human on a terminal, else json]')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Record each exchange with a provider into this directory')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'outrigger;run' {
            [CompletionResult]::new('--output-schema', '--output-schema', [CompletionResultType]::ParameterName, 'A file with the JSON schema of an object: the answer is one that fits it, as JSON, or none')
            [CompletionResult]::new('--url', '--url', [CompletionResultType]::ParameterName, 'Address of a running daemon: its page''s, e.g. http://127.0.0.1:4517, or its WebSocket''s (ws://, or wss:// behind a proxy)')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the running daemon''s token from a file [default: OUTRIGGER_TOKEN]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'Provider instance')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Model')
            [CompletionResult]::new('--trust-level', '--trust-level', [CompletionResultType]::ParameterName, 'How much is done without asking')
            [CompletionResult]::new('--workflow', '--workflow', [CompletionResultType]::ParameterName, 'Workflow')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print each event as a line of JSON in the place of the answer')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'outrigger;doctor' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--port', '--port', [CompletionResultType]::ParameterName, 'Port that the daemon is to listen on [default: 4517]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('--apparmor-profile', '--apparmor-profile', [CompletionResultType]::ParameterName, 'Print the profile of AppArmor that mode `full` takes on Ubuntu 24.04, and check nothing')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;schema' {
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Directory to write into; made where it is not there')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;config' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print each value with where it came from, secrets masked')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;config;show' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;config;help' {
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print each value with where it came from, secrets masked')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;config;help;show' {
            break
        }
        'outrigger;config;help;help' {
            break
        }
        'outrigger;sessions' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List them, the one that changed last first')
            [CompletionResult]::new('search', 'search', [CompletionResultType]::ParameterValue, 'Find those in which words were said; each word has to be there, the last one perhaps as a beginning')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print what was said in one')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Write one as JSON lines, which `import` reads, or as Markdown')
            [CompletionResult]::new('import', 'import', [CompletionResultType]::ParameterValue, 'Make a new session of a file that was exported as JSON lines, and print its id')
            [CompletionResult]::new('delete', 'delete', [CompletionResultType]::ParameterValue, 'Delete sessions for good')
            [CompletionResult]::new('stats', 'stats', [CompletionResultType]::ParameterValue, 'Print how much is kept')
            [CompletionResult]::new('backup', 'backup', [CompletionResultType]::ParameterValue, 'Write a copy of all that is kept to a new file; also while a daemon runs')
            [CompletionResult]::new('vacuum', 'vacuum', [CompletionResultType]::ParameterValue, 'Write the store anew, as small as it can be')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;sessions;list' {
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only those with this label (may be given several times)')
            [CompletionResult]::new('--project', '--project', [CompletionResultType]::ParameterName, 'Only those that work in this folder')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'At most so many')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--archived', '--archived', [CompletionResultType]::ParameterName, 'Those that were put away, instead of the others')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;search' {
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only those with this label (may be given several times)')
            [CompletionResult]::new('--project', '--project', [CompletionResultType]::ParameterName, 'Only those that work in this folder')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'At most so many')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--archived', '--archived', [CompletionResultType]::ParameterName, 'Those that were put away, instead of the others')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;show' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;export' {
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'As what')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'outrigger;sessions;import' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;delete' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;stats' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;backup' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;vacuum' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;sessions;help' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List them, the one that changed last first')
            [CompletionResult]::new('search', 'search', [CompletionResultType]::ParameterValue, 'Find those in which words were said; each word has to be there, the last one perhaps as a beginning')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print what was said in one')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Write one as JSON lines, which `import` reads, or as Markdown')
            [CompletionResult]::new('import', 'import', [CompletionResultType]::ParameterValue, 'Make a new session of a file that was exported as JSON lines, and print its id')
            [CompletionResult]::new('delete', 'delete', [CompletionResultType]::ParameterValue, 'Delete sessions for good')
            [CompletionResult]::new('stats', 'stats', [CompletionResultType]::ParameterValue, 'Print how much is kept')
            [CompletionResult]::new('backup', 'backup', [CompletionResultType]::ParameterValue, 'Write a copy of all that is kept to a new file; also while a daemon runs')
            [CompletionResult]::new('vacuum', 'vacuum', [CompletionResultType]::ParameterValue, 'Write the store anew, as small as it can be')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;sessions;help;list' {
            break
        }
        'outrigger;sessions;help;search' {
            break
        }
        'outrigger;sessions;help;show' {
            break
        }
        'outrigger;sessions;help;export' {
            break
        }
        'outrigger;sessions;help;import' {
            break
        }
        'outrigger;sessions;help;delete' {
            break
        }
        'outrigger;sessions;help;stats' {
            break
        }
        'outrigger;sessions;help;backup' {
            break
        }
        'outrigger;sessions;help;vacuum' {
            break
        }
        'outrigger;sessions;help;help' {
            break
        }
        'outrigger;admin' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('sessions', 'sessions', [CompletionResultType]::ParameterValue, 'List the sessions that live: whose, where, how they stand, what they cost')
            [CompletionResult]::new('users', 'users', [CompletionResultType]::ParameterValue, 'List the users with sessions that live')
            [CompletionResult]::new('nodes', 'nodes', [CompletionResultType]::ParameterValue, 'List the nodes: how many sessions each has, and whether it takes new ones')
            [CompletionResult]::new('drain', 'drain', [CompletionResultType]::ParameterValue, 'Have the daemon take nothing new, wait for what runs, and end')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;admin;sessions' {
            [CompletionResult]::new('--url', '--url', [CompletionResultType]::ParameterName, 'The daemon''s address, e.g. http://127.0.0.1:4517 [default: the configuration''s]')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the daemon''s token from a file [default: OUTRIGGER_TOKEN]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;admin;users' {
            [CompletionResult]::new('--url', '--url', [CompletionResultType]::ParameterName, 'The daemon''s address, e.g. http://127.0.0.1:4517 [default: the configuration''s]')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the daemon''s token from a file [default: OUTRIGGER_TOKEN]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;admin;nodes' {
            [CompletionResult]::new('--url', '--url', [CompletionResultType]::ParameterName, 'The daemon''s address, e.g. http://127.0.0.1:4517 [default: the configuration''s]')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the daemon''s token from a file [default: OUTRIGGER_TOKEN]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;admin;drain' {
            [CompletionResult]::new('--within', '--within', [CompletionResultType]::ParameterName, 'How long what runs may take, e.g. 30s or 10m, up to a day [default: the daemon''s shutdown.grace]')
            [CompletionResult]::new('--url', '--url', [CompletionResultType]::ParameterName, 'The daemon''s address, e.g. http://127.0.0.1:4517 [default: the configuration''s]')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Read the daemon''s token from a file [default: OUTRIGGER_TOKEN]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('--no-wait', '--no-wait', [CompletionResultType]::ParameterName, 'Return at once, instead of when the daemon has ended')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;admin;help' {
            [CompletionResult]::new('sessions', 'sessions', [CompletionResultType]::ParameterValue, 'List the sessions that live: whose, where, how they stand, what they cost')
            [CompletionResult]::new('users', 'users', [CompletionResultType]::ParameterValue, 'List the users with sessions that live')
            [CompletionResult]::new('nodes', 'nodes', [CompletionResultType]::ParameterValue, 'List the nodes: how many sessions each has, and whether it takes new ones')
            [CompletionResult]::new('drain', 'drain', [CompletionResultType]::ParameterValue, 'Have the daemon take nothing new, wait for what runs, and end')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;admin;help;sessions' {
            break
        }
        'outrigger;admin;help;users' {
            break
        }
        'outrigger;admin;help;nodes' {
            break
        }
        'outrigger;admin;help;drain' {
            break
        }
        'outrigger;admin;help;help' {
            break
        }
        'outrigger;token' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('key', 'key', [CompletionResultType]::ParameterValue, 'Print the public half of a private key, for auth.jwt.keys; the key is made where there is none')
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Print a token for a user, signed with a private key')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;token;key' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;token;create' {
            [CompletionResult]::new('--key', '--key', [CompletionResultType]::ParameterName, 'The private key that it is signed with')
            [CompletionResult]::new('--sub', '--sub', [CompletionResultType]::ParameterName, 'The user''s name')
            [CompletionResult]::new('--ttl', '--ttl', [CompletionResultType]::ParameterName, 'How long it holds, e.g. 8h')
            [CompletionResult]::new('--role', '--role', [CompletionResultType]::ParameterName, 'What its sockets may do')
            [CompletionResult]::new('--root', '--root', [CompletionResultType]::ParameterName, 'A folder below which its projects are, absolute; may be given several times [default: those of project.allowed]')
            [CompletionResult]::new('--trust', '--trust', [CompletionResultType]::ParameterName, 'The most that is done without asking [default: what the configuration allows]')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'US dollars that the user may spend in a day [default: budget.user_day]')
            [CompletionResult]::new('--disk', '--disk', [CompletionResultType]::ParameterName, 'How much the user may keep, e.g. 500MiB [default: auth.limits.disk]')
            [CompletionResult]::new('--iss', '--iss', [CompletionResultType]::ParameterName, 'Who makes it, for auth.jwt.issuer')
            [CompletionResult]::new('--aud', '--aud', [CompletionResultType]::ParameterName, 'Which daemon it is for, for auth.jwt.audience')
            [CompletionResult]::new('--jti', '--jti', [CompletionResultType]::ParameterName, 'Its own name, by which it can be taken back [default: a random one]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'outrigger;token;help' {
            [CompletionResult]::new('key', 'key', [CompletionResultType]::ParameterValue, 'Print the public half of a private key, for auth.jwt.keys; the key is made where there is none')
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Print a token for a user, signed with a private key')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;token;help;key' {
            break
        }
        'outrigger;token;help;create' {
            break
        }
        'outrigger;token;help;help' {
            break
        }
        'outrigger;healthcheck' {
            [CompletionResult]::new('--url', '--url', [CompletionResultType]::ParameterName, 'The daemon''s address, e.g. http://127.0.0.1:4517 [default: the configuration''s]')
            [CompletionResult]::new('--port', '--port', [CompletionResultType]::ParameterName, 'Port of the daemon on this machine [default: the configuration''s]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file (.toml, .yaml or .json) in the place of the user''s')
            [CompletionResult]::new('--project-root', '--project-root', [CompletionResultType]::ParameterName, 'The folder the model works in [default: the working directory]')
            [CompletionResult]::new('--project-name', '--project-name', [CompletionResultType]::ParameterName, 'The project''s name [default: the folder''s]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outrigger;help' {
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Run the daemon (the default)')
            [CompletionResult]::new('chat', 'chat', [CompletionResultType]::ParameterValue, 'Chat in the terminal, with a daemon of its own unless --url names one')
            [CompletionResult]::new('acp', 'acp', [CompletionResultType]::ParameterValue, 'Serve an editor on stdin and stdout, as an agent of the Agent Client Protocol')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Ask one thing without a terminal, for scripts and pipelines; questions are refused')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check what the daemon needs on this machine and say what is missing')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Write the protocol as JSON Schema, TypeScript and AsyncAPI, and the configuration''s JSON Schema')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Look at the configuration')
            [CompletionResult]::new('sessions', 'sessions', [CompletionResultType]::ParameterValue, 'Look at the sessions that are kept, write them to files and read them back')
            [CompletionResult]::new('admin', 'admin', [CompletionResultType]::ParameterValue, 'Ask a running daemon who works where, what runs and what it costs, or have it end in order')
            [CompletionResult]::new('token', 'token', [CompletionResultType]::ParameterValue, 'Make tokens for users, and the key that they are signed with')
            [CompletionResult]::new('healthcheck', 'healthcheck', [CompletionResultType]::ParameterValue, 'Ask a running daemon whether it is alive (exit code 0 or 1)')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outrigger;help;serve' {
            break
        }
        'outrigger;help;chat' {
            break
        }
        'outrigger;help;acp' {
            break
        }
        'outrigger;help;run' {
            break
        }
        'outrigger;help;doctor' {
            break
        }
        'outrigger;help;schema' {
            break
        }
        'outrigger;help;config' {
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print each value with where it came from, secrets masked')
            break
        }
        'outrigger;help;config;show' {
            break
        }
        'outrigger;help;sessions' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List them, the one that changed last first')
            [CompletionResult]::new('search', 'search', [CompletionResultType]::ParameterValue, 'Find those in which words were said; each word has to be there, the last one perhaps as a beginning')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print what was said in one')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Write one as JSON lines, which `import` reads, or as Markdown')
            [CompletionResult]::new('import', 'import', [CompletionResultType]::ParameterValue, 'Make a new session of a file that was exported as JSON lines, and print its id')
            [CompletionResult]::new('delete', 'delete', [CompletionResultType]::ParameterValue, 'Delete sessions for good')
            [CompletionResult]::new('stats', 'stats', [CompletionResultType]::ParameterValue, 'Print how much is kept')
            [CompletionResult]::new('backup', 'backup', [CompletionResultType]::ParameterValue, 'Write a copy of all that is kept to a new file; also while a daemon runs')
            [CompletionResult]::new('vacuum', 'vacuum', [CompletionResultType]::ParameterValue, 'Write the store anew, as small as it can be')
            break
        }
        'outrigger;help;sessions;list' {
            break
        }
        'outrigger;help;sessions;search' {
            break
        }
        'outrigger;help;sessions;show' {
            break
        }
        'outrigger;help;sessions;export' {
            break
        }
        'outrigger;help;sessions;import' {
            break
        }
        'outrigger;help;sessions;delete' {
            break
        }
        'outrigger;help;sessions;stats' {
            break
        }
        'outrigger;help;sessions;backup' {
            break
        }
        'outrigger;help;sessions;vacuum' {
            break
        }
        'outrigger;help;admin' {
            [CompletionResult]::new('sessions', 'sessions', [CompletionResultType]::ParameterValue, 'List the sessions that live: whose, where, how they stand, what they cost')
            [CompletionResult]::new('users', 'users', [CompletionResultType]::ParameterValue, 'List the users with sessions that live')
            [CompletionResult]::new('nodes', 'nodes', [CompletionResultType]::ParameterValue, 'List the nodes: how many sessions each has, and whether it takes new ones')
            [CompletionResult]::new('drain', 'drain', [CompletionResultType]::ParameterValue, 'Have the daemon take nothing new, wait for what runs, and end')
            break
        }
        'outrigger;help;admin;sessions' {
            break
        }
        'outrigger;help;admin;users' {
            break
        }
        'outrigger;help;admin;nodes' {
            break
        }
        'outrigger;help;admin;drain' {
            break
        }
        'outrigger;help;token' {
            [CompletionResult]::new('key', 'key', [CompletionResultType]::ParameterValue, 'Print the public half of a private key, for auth.jwt.keys; the key is made where there is none')
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Print a token for a user, signed with a private key')
            break
        }
        'outrigger;help;token;key' {
            break
        }
        'outrigger;help;token;create' {
            break
        }
        'outrigger;help;healthcheck' {
            break
        }
        'outrigger;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
