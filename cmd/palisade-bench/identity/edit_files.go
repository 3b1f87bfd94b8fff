package identity

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// moveFiles moves a third of the files with results, or of the folders, to other folders, and updates the imports.
func moveFiles(w *work) {
	if !w.wholeFolders {
		for _, file := range some(w.random, w.files(), 0.33) {
			w.move(file, moved(path.Dir(file))+"/"+path.Base(file))
		}
		return
	}
	folders := map[string]bool{}
	for _, file := range w.files() {
		if w.parse(file) != nil {
			folders[path.Dir(file)] = true
		}
	}
	for _, folder := range some(w.random, sortedKeys(folders), 0.33) {
		w.moveFolder(folder, moved(folder))
	}
}

// moved returns a new name for a folder without a special meaning in the language: internal folders stay internal.
func moved(folder string) string {
	if folder == "." {
		return "moved/root"
	}
	return path.Join(path.Dir(folder), "moved", path.Base(folder))
}

func (w *work) move(from, to string) {
	w.tree.Files[to] = w.tree.Files[from]
	delete(w.tree.Files, from)
}

// moveFolder moves the files of a Go package, without its subfolders, and updates its imports.
func (w *work) moveFolder(from, to string) {
	for _, file := range w.tree.Paths() {
		if path.Dir(file) == from {
			w.move(file, path.Join(to, path.Base(file)))
		}
	}
	old, now := strconv.Quote(path.Join(w.tree.Module, from)), strconv.Quote(path.Join(w.tree.Module, to))
	for _, file := range w.tree.Paths() {
		g := w.parse(file)
		if g == nil {
			continue
		}
		for _, spec := range g.file.Imports {
			if spec.Path.Value == old {
				l := &w.tree.Files[file][g.line(spec.Pos())-1]
				l.Text = strings.Replace(l.Text, old, now, 1)
			}
		}
	}
}

// renameFiles renames a third of the files with results in their folders. Suffixes with a meaning in Go stay.
func renameFiles(w *work) {
	for _, file := range some(w.random, w.files(), 0.33) {
		w.move(file, w.named(file, "x"))
	}
}

// named returns a path in the same folder, with addition after the first part of the file name.
func (w *work) named(file, addition string) string {
	base := path.Base(file)
	cut := strings.IndexAny(base, "_.")
	if cut < 0 {
		cut = len(base)
	}
	for {
		name := path.Join(path.Dir(file), base[:cut]+addition+base[cut:])
		if _, taken := w.tree.Files[name]; !taken {
			return name
		}
		addition += "x"
	}
}

// splitFiles moves the second half of half of the files with results to new files.
func splitFiles(w *work) {
	for _, file := range some(w.random, w.files(), 0.5) {
		lines := w.tree.Files[file]
		if !isGo(file) {
			middle := len(lines) / 2
			w.tree.Files[w.named(file, "part")] = slices.Clone(lines[middle:])
			w.tree.Files[file] = slices.Clone(lines[:middle])
			continue
		}
		if g := w.parse(file); g != nil {
			w.splitGo(file, g)
		}
	}
}

// splitGo splits a Go file between two declarations. The second half starts with the head of the first: constraints,
// package and imports.
func (w *work) splitGo(file string, g *goFile) {
	head, first := g.line(g.file.Name.End()), 0
	var starts []int
	for i, decl := range g.file.Decls {
		if isImport(decl) {
			head = g.line(decl.End())
			first = i + 1
		}
	}
	for _, decl := range g.file.Decls[min(first+1, len(g.file.Decls)):] {
		starts = append(starts, g.declLine(decl))
	}
	if len(starts) == 0 {
		return
	}
	cut := starts[len(starts)/2]
	lines := w.tree.Files[file]
	used := g.usedImports()
	unused := map[int]bool{} // already unused: they may be used under a name that the path does not tell
	for line, is := range used {
		unused[line] = !is
	}
	var second []Line
	for _, line := range lines[:head] {
		text := line.Text
		if strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "//go:build") && !strings.HasPrefix(text, "// +build") {
			text = "//" // the package comment stays in one file
		}
		second = append(second, Line{Text: text})
	}
	second = append(second, Line{})
	second = append(second, lines[cut-1:]...)
	part := w.named(file, "part")
	w.tree.Files[part] = blankUnused(part, second, func(Line) bool { return false })
	firstHalf := append(slices.Clone(lines[:cut-1]), Line{})
	w.tree.Files[file] = blankUnused(file, firstHalf, func(l Line) bool { return unused[l.From.Line] })
}
