import java.io.File;
import java.util.zip.ZipEntry;
import org.apache.commons.io.FilenameUtils;

class Archives {
    void unpack(File dir, ZipEntry entry) {
        // ruleid: palisade.java.zip-slip
        new File(dir, entry.getName());
        // ok: palisade.java.zip-slip
        new File(dir, FilenameUtils.getName(entry.getName()));
    }

    void unpackBelow(File dir, ZipEntry entry) throws Exception {
        // ok: palisade.java.zip-slip
        File target = new File(dir, entry.getName());
        if (!target.getCanonicalPath().startsWith(dir.getCanonicalPath() + File.separator)) {
            throw new SecurityException("outside of the directory");
        }
    }
}
