package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestQuarantineIsShown: the list and the page of a rule say that scans do not get it, and why.
func TestQuarantineIsShown(t *testing.T) {
	var answer shownRuleDetails
	err := json.Unmarshal([]byte(`{"rule":{"name":"acme.a","mode":"RULE_MODE_BLOCK","version":2,"quarantine":{"reason":"Pattern \u001b[31mparse error","scanId":"7","since":"2026-11-26T09:00:00.000000Z"}},
		"document":{"id":"acme.a"},"versions":[]}`), &answer)
	if err != nil {
		t.Fatal(err)
	}
	var list, page bytes.Buffer
	if err := printRules(&list, []shownRule{answer.Rule}); err != nil {
		t.Fatal(err)
	}
	if err := answer.print(&page); err != nil {
		t.Fatal(err)
	}
	wantParts(t, list.String(), "acme.a", "block, quarantined")
	wantParts(t, page.String(), "acme.a: mode block, quarantined, version 2", "in quarantine since 2026-11-26T09:00:00.000000Z, by scan 7: Pattern ", "palisade rules release acme.a")
	if said := quarantineLimit(make([]shownRule, 49)); said != "" {
		t.Errorf("49 rules: %s", said)
	}
	wantParts(t, quarantineLimit(make([]shownRule, 50)), "the limit of 50 rules in quarantine is reached")
	if bytes.ContainsRune(page.Bytes(), '\x1b') {
		t.Errorf("a control character reaches the terminal: %q", page.String())
	}
}
