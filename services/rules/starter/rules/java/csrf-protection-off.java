class Security {
    void chain(HttpSecurity http) throws Exception {
        // ruleid: palisade.java.csrf-protection-off
        http.csrf().disable();
        // ruleid: palisade.java.csrf-protection-off
        http.csrf(AbstractHttpConfigurer::disable);
        // ruleid: palisade.java.csrf-protection-off
        http.csrf(csrf -> csrf.disable());
        // ok: palisade.java.csrf-protection-off
        http.csrf();
        // ok: palisade.java.csrf-protection-off
        http.csrf(csrf -> csrf.ignoringRequestMatchers("/hooks/**"));
        // ok: palisade.java.csrf-protection-off
        http.cors(cors -> cors.disable());
        // ok: palisade.java.csrf-protection-off
        http.cors(AbstractHttpConfigurer::disable);
    }
}
