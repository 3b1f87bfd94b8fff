import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

class Settings {
    Object read(String text, LoaderOptions options) {
        // ruleid: palisade.java.unsafe-yaml-load
        new Yaml().load(text);
        // ok: palisade.java.unsafe-yaml-load
        new Yaml(new SafeConstructor(options)).load(text);
        // ok: palisade.java.unsafe-yaml-load
        return new Yaml().dump(text);
    }
}
