def list(name)
  # ruleid: palisade.ruby.command-injection
  system("ls #{name}")
  # ruleid: palisade.ruby.command-injection
  `ls #{name}`
  # ok: palisade.ruby.command-injection
  system("ls", name)
  # ok: palisade.ruby.command-injection
  system("ls -l")
  # ok: palisade.ruby.command-injection
  `git rev-parse HEAD`
  # ok: palisade.ruby.command-injection
  system("ls #{Shellwords.escape(name)}")
  # ok: palisade.ruby.command-injection
  Open3.capture2("ls #{name.shellescape} | wc -l")
  # ok: palisade.ruby.command-injection
  `ls #{Shellwords.escape(name)}`
  # ok: palisade.ruby.command-injection
  `ls #{name.shellescape}`
  # ruleid: palisade.ruby.command-injection
  IO.popen("ls #{name.strip}")
end
