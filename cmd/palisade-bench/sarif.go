package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// ruleCount is the number of rules in a report; their severities take turns.
const ruleCount = 200

// suppressedEvery suppresses every n-th result in the code, so that lists by status have rows to skip.
const suppressedEvery = 5

type object map[string]any

// makeReport returns a SARIF report for a seed: the same seed gives the same findings, another seed gives all new ones.
// A result takes about 600 bytes, or 620 with its share of the rules in a report of 10,000. The text of each of the
// ruleCount rules, about 960 bytes, is in a report once.
func makeReport(seed uint64, results int) ([]byte, error) {
	return makeReportOf("benchscan", seed, results)
}

// makeReportOf is makeReport for a tool. The tool determines the product: code, dependencies or secrets.
func makeReportOf(tool string, seed uint64, results int) ([]byte, error) {
	var report bytes.Buffer
	_, err := writeReport(&report, tool, seed, func(n int, _ int64) bool { return n < results })
	return report.Bytes(), err
}

// writeReport streams a report, with results while more returns true; more gets the number of results and bytes so far.
// It returns the number of results.
func writeReport(w io.Writer, tool string, seed uint64, more func(results int, bytes int64) bool) (int, error) {
	out := bufio.NewWriterSize(w, 256<<10)
	rules := make([]object, ruleCount)
	for i := range rules {
		rules[i] = makeRule(i)
	}
	head, err := json.Marshal(object{"driver": object{"name": tool, "version": "1.0.0", "rules": rules}})
	if err != nil {
		return 0, err
	}
	written, err := fmt.Fprintf(out, `{"version":"2.1.0","runs":[{"tool":%s,"invocations":[{"executionSuccessful":true}],"results":[`, head)
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	results, size := 0, int64(written)
	for ; more(results, size); results++ {
		result, err := json.Marshal(makeResult(random, results))
		if err != nil {
			return results, err
		}
		if results > 0 {
			result = append([]byte{','}, result...)
		}
		if _, err := out.Write(result); err != nil {
			return results, err
		}
		size += int64(len(result))
	}
	if _, err := out.WriteString("]}]}"); err != nil {
		return results, err
	}
	return results, out.Flush()
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
