import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;

class Vectors {
    void vectors(byte[] fresh) {
        // ruleid: palisade.java.static-iv
        new IvParameterSpec("0123456789abcdef".getBytes());
        // ruleid: palisade.java.static-iv
        new GCMParameterSpec(128, "0123456789ab".getBytes());
        // ok: palisade.java.static-iv
        new IvParameterSpec(fresh);
        // ok: palisade.java.static-iv
        new GCMParameterSpec(128, fresh);
    }
}
