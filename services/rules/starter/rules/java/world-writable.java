import java.io.File;
import java.nio.file.attribute.PosixFilePermissions;

class Permissions {
    void files(File file) {
        // ruleid: palisade.java.world-writable
        file.setWritable(true, false);
        // ruleid: palisade.java.world-writable
        PosixFilePermissions.fromString("rw-rw-rw-");
        // ok: palisade.java.world-writable
        PosixFilePermissions.fromString("rw-r-----");
        // ok: palisade.java.world-writable
        file.setWritable(true, true);
        // ok: palisade.java.world-writable
        file.setWritable(false, false);
    }
}
