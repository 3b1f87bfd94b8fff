import javax.servlet.http.HttpServletRequest;

class Convert {
    void convert(HttpServletRequest request) throws Exception {
        // ruleid: palisade.java.command-from-request
        new ProcessBuilder("convert", request.getParameter("file"));
        String name = request.getHeader("X-Name");
        // ruleid: palisade.java.command-from-request
        Runtime.getRuntime().exec(name);
        // ok: palisade.java.command-from-request
        new ProcessBuilder("convert", "-version");
        // ok: palisade.java.command-from-request
        new ProcessBuilder("convert", System.getenv("CONVERT_FILE"));
    }
}
