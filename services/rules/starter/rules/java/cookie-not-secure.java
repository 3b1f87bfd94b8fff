import javax.servlet.http.Cookie;

class Cookies {
    void cookies(Cookie cookie, boolean secure) {
        // ruleid: palisade.java.cookie-not-secure
        cookie.setSecure(false);
        // ruleid: palisade.java.cookie-not-secure
        cookie.setHttpOnly(false);
        // ok: palisade.java.cookie-not-secure
        cookie.setSecure(true);
        // ok: palisade.java.cookie-not-secure
        cookie.setSecure(secure);
        // ok: palisade.java.cookie-not-secure
        cookie.setMaxAge(0);
    }
}
