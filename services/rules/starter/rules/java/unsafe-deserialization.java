import java.io.BufferedReader;
import java.io.ObjectInputStream;

class Objects {
    void read(ObjectInputStream stream, BufferedReader reader) throws Exception {
        // ruleid: palisade.java.unsafe-deserialization
        stream.readObject();
        // ok: palisade.java.unsafe-deserialization
        reader.readLine();
    }

    void readFiltered(ObjectInputStream stream, ObjectInputFilter filter) throws Exception {
        stream.setObjectInputFilter(filter);
        // ok: palisade.java.unsafe-deserialization
        stream.readObject();
    }
}
