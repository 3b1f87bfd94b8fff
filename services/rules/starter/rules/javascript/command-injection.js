import cp from "node:child_process";
import { execSync } from "node:child_process";

function commands(name, pattern) {
  // ruleid: palisade.javascript.command-injection
  cp.exec("ls " + name);
  // ruleid: palisade.javascript.command-injection
  execSync(`ls ${name}`);
  // ok: palisade.javascript.command-injection
  cp.exec("ls -l");
  // ok: palisade.javascript.command-injection
  cp.execFile("ls", [name]);
  // ok: palisade.javascript.command-injection
  return pattern.exec(name);
}
