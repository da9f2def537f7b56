# What Homebrew does with a formula, without Homebrew: ruby formula.rb OUTRIGGER.RB FOLDER PREFIX installs an unpacked archive into
# PREFIX. Names that the formula uses and Homebrew has are here; any other one is an error.
require "fileutils"
require "pathname"

# A folder that things are installed into.
class Place < Pathname
  def install(*what)
    FileUtils.mkdir_p(self)
    what.flatten.each do |it|
      pairs = it.is_a?(Hash) ? it : { it => File.basename(it) }
      pairs.each { |from, to| FileUtils.cp(from, self / to) }
    end
  end
end

class Formula
  class << self
    def desc(_) = nil
    def homepage(_) = nil
    def version(_) = nil
    def license(_) = nil
    def url(_) = nil
    def sha256(_) = nil
    def on_macos = yield
    def on_linux = yield
    def on_arm = yield
    def on_intel = yield
    # What is in them runs on a user's machine.
    def service = nil
    def test = nil
  end
  def bin = Place.new(File.join(ARGV[2], "bin"))
  def man1 = Place.new(File.join(ARGV[2], "share/man/man1"))
  def bash_completion = Place.new(File.join(ARGV[2], "etc/bash_completion.d"))
  def zsh_completion = Place.new(File.join(ARGV[2], "share/zsh/site-functions"))
  def fish_completion = Place.new(File.join(ARGV[2], "share/fish/vendor_completions.d"))
end

load File.expand_path(ARGV[0])
Dir.chdir(ARGV[1]) { Outrigger.new.install }
