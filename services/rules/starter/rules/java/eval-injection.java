import javax.script.ScriptEngine;
import org.springframework.expression.spel.standard.SpelExpressionParser;

class Scripts {
    void run(ScriptEngine engine, SpelExpressionParser parser, Calculator calculator, String text) throws Exception {
        // ruleid: palisade.java.eval-injection
        engine.eval(text);
        // ruleid: palisade.java.eval-injection
        parser.parseExpression(text);
        // ok: palisade.java.eval-injection
        engine.eval("1 + 1");
        // ok: palisade.java.eval-injection
        calculator.eval(text);
    }
}
