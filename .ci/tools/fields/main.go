// Command fields checks that nothing is hollow: every field of a response, every column and every stored message has
// code that writes it, and every field of a request, every column and every stored message has code that uses it. So
// has every member of a report that services/scans/formats decodes.
//
//	fields [-list] [DIRECTORY]
//
// It type-checks the program without its tests and looks at each place that mentions a field. Setting a field to a
// constant zero is no writing, and showing a column again is no use of it. The comment of a field may say why it has
// none: "No effect: ", "Never set: " or "Unused: " with the reason. exceptions.go has the other ones that are right.
//
// -list prints all fields with the first writer and reader of each. The exit code is 1 if a field has no writer or
// reader, or if an exception is not needed any more.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/palisade/palisade/"

func main() {
	list := flag.Bool("list", false, "print all fields with a writer and a reader")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	rows, err := table(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fields:", err)
		os.Exit(2)
	}
	if *list {
		for _, r := range rows {
			fmt.Printf("%s\t%s\t%s\t%s\n", r.kind, r.name, first(r.writers), first(r.readers))
		}
	}
	problems := check(rows, exceptions)
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

func first(functions []string) string {
	if len(functions) == 0 {
		return "-"
	}
	return functions[0]
}

// row is a field with the functions that write and read it. A function is "file name". The field has its name in the
// proto file, such as findings.v1.Finding.rule_name, or is table.column.
type row struct {
	kind, name             string
	writers, readers       []string
	needsWriter, needsRead bool
	excused                bool // its comment says why it has none
}

// table returns all fields of the program in the directory.
func table(root string) ([]row, error) {
	imported, roots, err := load(root)
	if err != nil {
		return nil, err
	}
	reasons, err := readReasons(root)
	if err != nil {
		return nil, err
	}
	u := newUses()
	for _, pkg := range roots {
		u.collect(pkg)
	}
	var rows []row
	m := findMessages(imported)
	for _, name := range slices.Sorted(maps.Keys(m.fields)) {
		kinds := m.kinds[name]
		for _, f := range m.fields[name] {
			shown := strings.TrimPrefix(strings.TrimPrefix(f.message, "gen/palisade/"), "gen/") + "." + f.proto
			rows = append(rows, row{
				kind: strings.Join(slices.Sorted(maps.Keys(kinds)), ","), name: strings.ReplaceAll(shown, "/", "."),
				writers: u.writers(f), readers: u.readers(f), needsWriter: (kinds["response"] || kinds["stored"]) && !kinds["request"], // a request writes its own fields
				needsRead: kinds["request"] || kinds["stored"] && !kinds["response"],
				excused:   reasons[f.owner()+"."+f.name],
			})
		}
	}
	for _, c := range findColumns(imported) {
		rows = append(rows, row{
			kind: "column", name: c.pkg + "." + c.sql, writers: u.columnWriters(c), readers: slices.DeleteFunc(u.columnReaders(c), shows),
			needsWriter: true, needsRead: true,
		})
	}
	return append(rows, decodedRows(roots)...), nil
}

// shows is true for the functions of files that only convert rows to messages.
func shows(function string) bool {
	file, _, _ := strings.Cut(function, " ")
	return strings.HasSuffix(file, "convert.go")
}

// check returns a line for each field without a writer or reader, and for each exception that matches none.
func check(rows []row, exceptions []exception) []string {
	var problems []string
	used := make([]bool, len(exceptions))
	for _, r := range rows {
		var lacks []string
		if r.needsWriter && len(r.writers) == 0 {
			lacks = append(lacks, "nothing writes it")
		}
		if r.needsRead && len(r.readers) == 0 {
			lacks = append(lacks, "nothing uses it")
		}
		if len(lacks) == 0 {
			if r.excused {
				problems = append(problems, r.name+": its comment says that it has no effect or is never set, but code uses it")
			}
			continue
		}
		excepted := r.excused
		for i, e := range exceptions {
			if e.pattern.MatchString(r.name) {
				used[i], excepted = true, true
			}
		}
		if !excepted {
			problems = append(problems, fmt.Sprintf("%s (%s): %s", r.name, r.kind, strings.Join(lacks, ", ")))
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			problems = append(problems, fmt.Sprintf("exceptions.go: %s is not needed any more", e.pattern))
		}
	}
	return problems
}

// load type-checks the program without its tests. The packages that it imports come from the build cache.
func load(root string) (imported map[string]*types.Package, roots []*packages.Package, err error) {
	roots, err = packages.Load(&packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile,
	}, "./services/...", "./cmd/palisade/...")
	if err != nil {
		return nil, nil, err
	}
	imported = map[string]*types.Package{}
	for _, pkg := range roots {
		if len(pkg.Errors) > 0 {
			return nil, nil, pkg.Errors[0]
		}
		for _, of := range pkg.Types.Imports() {
			imported[of.Path()] = of
		}
	}
	if imported[module+"ent"] == nil {
		return nil, nil, errors.New("the program does not import " + module + "ent")
	}
	return imported, roots, nil
}
