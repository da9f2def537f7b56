# Made by release/manifests of the sums of a release; what stands between @ is put in there.
class Outrigger < Formula
  desc "Daemon beside a chat frontend: model, sandboxed tools, approvals, one WebSocket"
  homepage "https://github.com/outrigger/outrigger"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/outrigger/outrigger/releases/download/v@VERSION@/outrigger-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256 aarch64-apple-darwin@"
    end
    on_intel do
      url "https://github.com/outrigger/outrigger/releases/download/v@VERSION@/outrigger-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256 x86_64-apple-darwin@"
    end
  end
  on_linux do
    on_arm do
      url "https://github.com/outrigger/outrigger/releases/download/v@VERSION@/outrigger-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "https://github.com/outrigger/outrigger/releases/download/v@VERSION@/outrigger-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "outrigger"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/outrigger.bash" => "outrigger"
    zsh_completion.install "completions/_outrigger"
    fish_completion.install "completions/outrigger.fish"
  end

  service do
    # The ready line has the token: it goes to a file of the user's, and to no log.
    run [opt_bin/"outrigger", "serve", "--ready", "json", "--ready-file", var/"outrigger-ready.json"]
    log_path "/dev/null"
    keep_alive crashed: true
    working_dir "/"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/outrigger --version")
    assert_match "scripted", shell_output("#{bin}/outrigger run hello")
  end
end
