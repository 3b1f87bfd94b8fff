package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// ruleCount is how many rules a report has; their severities take turns.
const ruleCount = 200

// suppressedEvery makes every so-many-th result suppressed in the code, so that lists by status have something to skip.
const suppressedEvery = 5

type object map[string]any

// makeReport writes a SARIF report whose results are those of seed: the same seed gives the same findings, another one
// gives all new ones. With its rule a finding takes about 1.5 KB on the wire.
func makeReport(seed uint64, results int) ([]byte, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	rules := make([]object, ruleCount)
	for i := range rules {
		rules[i] = makeRule(i)
	}
	list := make([]object, results)
	for i := range list {
		list[i] = makeResult(random, i)
	}
	var report bytes.Buffer
	err := json.NewEncoder(&report).Encode(object{
		"version": "2.1.0",
		"runs": []object{{
			"tool":        object{"driver": object{"name": "benchscan", "version": "1.0.0", "rules": rules}},
			"invocations": []object{{"executionSuccessful": true}},
			"results":     list,
		}},
	})
	return report.Bytes(), err
}

func ruleName(i int) string { return fmt.Sprintf("go.lang.security.injection.rule-%03d", i) }

func makeRule(i int) object {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	severity := []string{"2.5", "5.0", "7.5", "9.5"}[i%4]
	return object{
		"id":               ruleName(i),
		"shortDescription": object{"text": sentence(random, 30)},
		"help":             object{"text": sentence(random, 80)},
		"properties": object{
			"security-severity": severity,
			"precision":         []string{"low", "medium", "high"}[i%3],
			"tags": []string{"security", "CWE-89: Improper Neutralization of Special Elements used in an SQL Command ('SQL Injection')",
				"OWASP-A03:2021 - Injection"},
		},
	}
}

func makeResult(random *rand.Rand, i int) object {
	line := 1 + random.IntN(2000)
	result := object{
		"ruleId":  ruleName(random.IntN(ruleCount)),
		"message": object{"text": sentence(random, 40)},
		"locations": []object{{"physicalLocation": object{
			"artifactLocation": object{"uri": fmt.Sprintf("services/%s/%s_%d.go", word(random), word(random), random.IntN(500))},
			"region": object{
				"startLine": line, "startColumn": 2, "endLine": line + 2, "endColumn": 40,
				"snippet": object{"text": fmt.Sprintf("rows, err := db.Query(%q + %s_%d)\n", sentence(random, 6), word(random), random.Uint32())},
			},
		}}},
	}
	if i%suppressedEvery == suppressedEvery-1 {
		result["suppressions"] = []object{{"kind": "inSource", "justification": sentence(random, 5)}}
	}
	return result
}

var words = strings.Fields(`the value of this parameter comes from an untrusted request and reaches a query without being
	checked escaped or bound so that whoever sends it can read change or remove rows of other tenants use a placeholder
	instead never build statements by joining text validate length and alphabet first handler session token storage`)

func word(random *rand.Rand) string { return words[random.IntN(len(words))] }

func sentence(random *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word(random))
	}
	return b.String()
}
