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

// TestUserRemove: an operator removes and demotes people, and decides about their API tokens. Without a decision about
// each, the command lists them and changes nothing.
func TestUserRemove(t *testing.T) {
	dir := t.TempDir()
	client, store := startReadyServer(t, dir), []string{"PALISADE_DATA=" + dir}
	tamper(t, dir, `INSERT INTO users (email, name, created_at) VALUES ('ada@acme.test', 'Ada', 1);
		INSERT INTO memberships (deployment_id, user_id, role, created_at) SELECT 1, id, 'ORG_ROLE_ADMIN', 1 FROM users WHERE email = 'ada@acme.test'`)
	for _, name := range []string{"ci", "own"} {
		if got := palisade(t, "", store, "token", "create", "--name", name, "--scopes", "web-api"); got.status != exitOK {
			t.Fatal(got.err)
		}
	}
	// as if Ada had created them
	tamper(t, dir, "UPDATE tokens SET handed_over_at = NULL, user_id = (SELECT id FROM users WHERE email = 'ada@acme.test') WHERE id > 1")
	list := func(want string) {
		t.Helper()
		if got := palisade(t, "", store, "token", "list").out; !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	list(`3 +own .* ORG_ROLE_READONLY +ORG_ROLE_READONLY +ada@acme.test +valid`)
	wantParts(t, palisade(t, "", store, "user", "tokens", "--email", "ada@acme.test").out, "ci", "own")
	who := []string{"user", "remove", "--email", "ada@acme.test"}
	got := palisade(t, "", store, who...)
	if got.status == exitOK || !strings.Contains(got.err, "nothing was changed") {
		t.Errorf("got %d %s", got.status, got.err)
	}
	wantParts(t, got.out, "ci", "own", "?")
	if got := palisade(t, "", store, append(who, "--tokens", "burn")...); got.status != exitError || !strings.Contains(got.err, "want end, keep or leave") {
		t.Errorf("got %d %s", got.status, got.err)
	}
	wantParts(t, palisade(t, "", store, append(who, "--tokens", "end", "--keep-tokens", "99")...).err, "token 99 not found")
	if got := palisade(t, "", store, "user", "role", "--email", "ada@acme.test", "--role", "member", "--tokens", "leave"); got.status != exitOK {
		t.Error(got.err)
	}
	got = palisade(t, "", store, append(who, "--tokens", "end", "--keep-tokens", "2")...)
	if got.status != exitOK {
		t.Fatal(got.err)
	}
	wantParts(t, got.out, "keep", "end", "no longer a member")
	list(`3 +own .* ORG_ROLE_READONLY +- +ada@acme.test +revoked`)
	list(`2 +ci .* ORG_ROLE_READONLY +ORG_ROLE_READONLY +- +valid`)
	wantParts(t, palisade(t, "", store, append(who, "--tokens", "end")...).err, "not found")
	wantParts(t, palisade(t, "", store, "user", "remove", "--email", "admin@localhost").err, "last administrator")
	if got := palisade(t, "", client, "findings"); got.status != exitOK {
		t.Error(got.err)
	}
	entries := palisade(t, "", store, "audit", "export").out
	wantParts(t, entries, `"method":"user.remove"`, `"method":"user.role"`, "handedOverAt")
}
