const cp = require("child_process");

function build(name) {
  // ruleid: palisade.javascript.spawn-shell
  cp.spawn("git", ["clone", name], { shell: true });
  // ok: palisade.javascript.spawn-shell
  cp.spawn("git", ["clone", name]);
  // ok: palisade.javascript.spawn-shell
  cp.spawn("npm", [], { shell: true });
  // ok: palisade.javascript.spawn-shell
  cp.spawn("git", ["clone", name], { shell: false });
}
