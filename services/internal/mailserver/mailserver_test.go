package mailserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/mailserver"
)

func TestParse(t *testing.T) {
	c, err := mailserver.Parse("smtps://acme:hunter22@[::1]", "palisade@acme.test")
	if err != nil || c.String() != "[::1]:465" || !c.Enabled() || !c.ImplicitTLS {
		t.Errorf("got %v, %v", c, err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(text, "hunter22") {
		t.Errorf("a password is printed: %s", text)
	}
	if c, err := mailserver.Parse("smtp://mail.internal", "palisade@acme.test"); err != nil || c.Port != "587" {
		t.Errorf("got %v, %v", c, err)
	}
	if c, err := mailserver.Parse("", ""); err != nil || c.Enabled() {
		t.Errorf("no server: got %v, %v", c, err)
	}
	for _, bad := range [][2]string{
		{"mail.internal:25", "a@b.test"}, {"smtp://", "a@b.test"}, {"smtp://h/x", "a@b.test"}, {"smtp://h?x", "a@b.test"},
		{"smtp://h:0", "a@b.test"}, {"smtp://hunter22@h", "a@b.test"}, {"smtp://:hunter22@h", "a@b.test"}, {"http://h", "a@b.test"},
		{"smtp://u:hunter22%@h", "a@b.test"}, {"smtp://h", ""}, {"smtp://h", "nobody"},
	} {
		if _, err := mailserver.Parse(bad[0], bad[1]); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}
