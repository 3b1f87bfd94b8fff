import java.io.*;
import java.net.URL;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.sql.*;
import java.util.Random;
import java.util.zip.*;
import javax.crypto.Cipher;
import javax.net.ssl.*;
import javax.script.ScriptEngine;
import javax.servlet.http.*;
import javax.xml.parsers.*;

class Samples {
    // ruleid: palisade.java.hardcoded-credential
    private static final String DATABASE_PASSWORD = "correct-horse-battery";
    // ok: palisade.java.hardcoded-credential
    private static final String MAIL_PASSWORD = System.getenv("MAIL_PASSWORD");

    void commands(String name, HttpServletRequest request) throws Exception {
        // ruleid: palisade.java.command-injection
        Runtime.getRuntime().exec("ls " + name);
        // ok: palisade.java.command-injection
        Runtime.getRuntime().exec("ls -l");
        // ruleid: palisade.java.command-from-request
        new ProcessBuilder("convert", request.getParameter("file"));
        // ok: palisade.java.command-from-request
        new ProcessBuilder("convert", "-version");
    }

    void statements(Connection connection, Statement statement, String id) throws Exception {
        // ruleid: palisade.java.sql-injection
        statement.executeQuery("SELECT name FROM users WHERE id = " + id);
        // ruleid: palisade.java.sql-injection
        statement.executeQuery("SELECT name FROM users WHERE id = '" + id + "'");
        // ok: palisade.java.sql-injection
        connection.prepareStatement("SELECT name FROM users WHERE id = ?");
    }

    void code(ScriptEngine engine, String text, ObjectInputStream stream, BufferedReader reader) throws Exception {
        // ruleid: palisade.java.eval-injection
        engine.eval(text);
        // ok: palisade.java.eval-injection
        engine.eval("1 + 1");
        // ruleid: palisade.java.unsafe-deserialization
        stream.readObject();
        // ok: palisade.java.unsafe-deserialization
        reader.readLine();
    }

    void parsers(InputStream in) throws Exception {
        DocumentBuilderFactory open = DocumentBuilderFactory.newInstance();
        // ruleid: palisade.java.xxe
        open.newDocumentBuilder();
        DocumentBuilderFactory closed = DocumentBuilderFactory.newInstance();
        closed.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        // ok: palisade.java.xxe
        closed.newDocumentBuilder();
    }

    void cryptography(Random random, SecureRandom secure) throws Exception {
        // ruleid: palisade.java.weak-hash
        MessageDigest.getInstance("MD5");
        // ok: palisade.java.weak-hash
        MessageDigest.getInstance("SHA-256");
        // ruleid: palisade.java.weak-cipher
        Cipher.getInstance("AES/ECB/PKCS5Padding");
        // ok: palisade.java.weak-cipher
        Cipher.getInstance("AES/GCM/NoPadding");
        // ruleid: palisade.java.insecure-random
        int resetToken = random.nextInt(1000000);
        // ok: palisade.java.insecure-random
        int sessionToken = secure.nextInt(1000000);
    }

    void connections(HttpsURLConnection connection, HostnameVerifier verifier, String token) {
        // ruleid: palisade.java.tls-verification-off
        connection.setHostnameVerifier((host, session) -> true);
        // ok: palisade.java.tls-verification-off
        connection.setHostnameVerifier(verifier);
        // ruleid: palisade.java.jwt-unverified
        JWT.decode(token);
        // ok: palisade.java.jwt-unverified
        JWT.require(Algorithm.RSA256(null, null)).build().verify(token);
    }

    static class TrustEverything implements X509TrustManager {
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        // ruleid: palisade.java.tls-verification-off
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }

    void requested(HttpServletRequest request, HttpServletResponse response) throws Exception {
        // ruleid: palisade.java.path-traversal
        new File("/srv/reports", request.getParameter("name"));
        // ok: palisade.java.path-traversal
        new File("/srv/reports", FilenameUtils.getName(request.getParameter("name")));
        // ruleid: palisade.java.ssrf
        new URL(request.getParameter("url"));
        // ok: palisade.java.ssrf
        new URL("https://api.acme.test/status");
        // ruleid: palisade.java.open-redirect
        response.sendRedirect(request.getParameter("next"));
        // ok: palisade.java.open-redirect
        response.sendRedirect("/");
        // ruleid: palisade.java.reflected-xss
        response.getWriter().println("Hello " + request.getParameter("name"));
        // ok: palisade.java.reflected-xss
        response.getWriter().println("Hello " + Encode.forHtml(request.getParameter("name")));
    }

    void files(File file, File dir, ZipEntry entry) {
        // ruleid: palisade.java.world-writable
        file.setWritable(true, false);
        // ok: palisade.java.world-writable
        PosixFilePermissions.fromString("rw-r-----");
        // ruleid: palisade.java.zip-slip
        new File(dir, entry.getName());
        // ok: palisade.java.zip-slip
        new File(dir, FilenameUtils.getName(entry.getName()));
    }

    void settings(HttpSecurity http) throws Exception {
        // ruleid: palisade.java.csrf-protection-off
        http.csrf().disable();
        // ok: palisade.java.csrf-protection-off
        http.csrf();
    }
}
