package identity

import (
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"strings"
	"testing"
)

// shopGo has one result on each line that ends in "// R".
const shopGo = `// Package shop sells things.
package shop

import (
	"fmt"
	"os"
	"strings"
)

const banner = ` + "`" + `
	indented text // R
` + "`" + `

// Sell sells count things.
func Sell(name string, count int) error {
	file, err := os.Create(name) // R
	if err != nil {
		return err
	}
	fmt.Fprintln(file, banner, count) // R
	fmt.Fprintln(file, banner, count) // R
	file.Close()                      // R
	total := 0
	for i := 0; i < count; i++ {
		total = total + i // R
	}
	return nil
}

type order struct{ name string }

func (o *order) label() string {
	name := strings.ToUpper(o.name) // R
	other := order{name: name}
	return other.name
}

// Quit leaves.
func Quit() {
	os.Remove("order") // R
	os.Exit(1)
}
`

const mainGo = `package main

import (
	"os"

	"example.com/mall/shop"
)

func main() {
	shop.Sell(os.Args[1], 3) // R
	defer shop.Quit()        // R
	shop.Sell("again", 1)    // R
}
`

// mall is a module with results on lines that end in "// R".
func mall() *Source {
	tree := &Tree{Module: "example.com/mall", Files: map[string][]Line{
		"main.go": splitLines("main.go", mainGo), "shop/shop.go": splitLines("shop/shop.go", shopGo),
	}, Other: map[string][]byte{"go.mod": []byte("module example.com/mall\n\ngo 1.21\n")}}
	report := &Report{Tool: "mallscan", Version: "1.2.3", run: object{"tool": object{"driver": object{
		"name": "mallscan", "rules": []any{object{"id": "unchecked"}, object{"id": "odd"}, object{"id": "never"}},
	}}}}
	for _, file := range tree.Paths() {
		for i, line := range tree.Files[file] {
			if !strings.HasSuffix(line.Text, "// R") {
				continue
			}
			result := Result{
				Rule: []string{"unchecked", "odd"}[i%2], Place: Place{file, i + 1}, Column: 1 + len(line.Text) - len(strings.TrimLeft(line.Text, "\t ")),
				Message: "look here", Snippet: strings.TrimSpace(line.Text),
			}
			result.raw = object{"locations": []any{object{"physicalLocation": object{"artifactLocation": object{}, "region": object{}}}}}
			report.Results = append(report.Results, result)
		}
	}
	return &Source{Name: "mall", Tree: tree, Report: report}
}

func testRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func planOf(t *testing.T, source *Source, name string, seed uint64) *Plan {
	t.Helper()
	for _, edit := range Edits() {
		if edit.Name == name {
			plan, err := NewPlan(t.Context(), source, edit, testRandom(seed))
			if err != nil {
				t.Fatal(err)
			}
			return plan
		}
	}
	t.Fatalf("no edit %q", name)
	return nil
}

// parses fails the test for Go files with syntax errors.
func parses(t *testing.T, tree *Tree) {
	t.Helper()
	for _, file := range tree.Paths() {
		if isGo(file) {
			if _, err := parser.ParseFile(token.NewFileSet(), file, tree.Text(file), parser.AllErrors); err != nil {
				t.Errorf("%v\n%s", err, numbered(tree.Text(file)))
			}
		}
	}
}

func numbered(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%3d %s\n", i+1, line)
	}
	return b.String()
}
