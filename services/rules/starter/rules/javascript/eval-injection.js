const vm = require("vm");

function code(text, calculator) {
  // ruleid: palisade.javascript.eval-injection
  eval(text);
  // ruleid: palisade.javascript.eval-injection
  new Function("x", text);
  // ok: palisade.javascript.eval-injection
  eval("1 + 1");
  // ok: palisade.javascript.eval-injection
  calculator.eval(text);
  // ok: palisade.javascript.eval-injection
  vm.runInNewContext("1 + 1", {});
}
