class Commands {
    void list(String name, Runtime runtime) throws Exception {
        // ruleid: palisade.java.command-injection
        Runtime.getRuntime().exec("ls " + name);
        // ruleid: palisade.java.command-injection
        new ProcessBuilder("sh", "-c", name);
        // ok: palisade.java.command-injection
        Runtime.getRuntime().exec("ls -l");
        // ok: palisade.java.command-injection
        new ProcessBuilder("ls", name);
        // ok: palisade.java.command-injection
        new ProcessBuilder("sh", "-c", "ls | wc -l");
    }
}
