package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestUserAndTokenCommands: an operator creates tokens and links users on the server's machine while the server runs.
func TestUserAndTokenCommands(t *testing.T) {
	dir := t.TempDir()
	client, store := startServer(t, dir), []string{"PALISADE_DATA=" + dir}
	if got := palisade(t, "", client, "upload", "testdata/gosec-pocketbase.sarif", "--project", "a/b", "--ref", "main", "--wait", "1m"); got.status != exitOK {
		t.Fatal(got.err)
	}
	for scopes, want := range map[string]string{"web-api": "ORG_ROLE_READONLY", "agent": "ORG_ROLE_MEMBER", "agent,web-api": "ORG_ROLE_MEMBER"} {
		got := palisade(t, "", store, "token", "create", "--name", "x", "--scopes", scopes)
		if got.status != exitOK || !strings.Contains(got.err, "with the role "+want) {
			t.Errorf("--scopes %s: status %d %s", scopes, got.status, got.err)
		}
	}
	if got := palisade(t, "", store, "token", "create", "--name", "x", "--scopes", "agent", "--role", "admin"); got.status == exitOK || got.out != "" {
		t.Errorf("an agent that is administrator: %s%s", got.out, got.err)
	}

	list := palisade(t, "", store, "user", "list")
	if !regexp.MustCompile(`1 +admin@localhost +Administrator +ORG_ROLE_ADMIN +- +-`).MatchString(list.out) {
		t.Errorf("got %s%s", list.out, list.err)
	}
	wantParts(t, palisade(t, "", store, "user", "link", "--email", "admin@localhost", "--subject", "1").err, "oidc-issuer is not set")
	withIssuer := append([]string{"PALISADE_OIDC_ISSUER=https://id.acme.test"}, store...)
	wantParts(t, palisade(t, "", withIssuer, "user", "link", "--email", "admin@localhost", "--subject", "1").err, "cannot be linked")
	wantParts(t, palisade(t, "", store, "user", "link", "--email", "x@acme.test", "--subject", "1", "--oidc-issuer", "https://id.acme.test").err, "not found")
	wantParts(t, palisade(t, "", store, "user", "unlink", "--email", "admin@localhost").err, "has no identity")
}
