package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/rules/document"
)

// ruleFiles requires at least one directory or file, and allows "-" once.
func ruleFiles(cmd *cobra.Command, args []string) error {
	stdin := 0
	for _, name := range args {
		if name == "-" {
			stdin++
		}
	}
	switch {
	case len(args) == 0:
		return usagef("%s needs a directory or a file with rules, or - for standard input", cmd.CommandPath())
	case stdin > 1:
		return usagef("standard input (-) can be read only once")
	}
	return nil
}

// fileOfRules is a file with its valid rules.
type fileOfRules struct {
	name  string
	rules []document.Rule
}

// readRules reads directories and files, and collects their problems. A duplicate name is a problem of the second file.
func readRules(std streams, args []string) (files []fileOfRules, problems []document.Problem, err error) {
	names, err := ruleFileNames(args)
	if err != nil {
		return nil, nil, err
	}
	bar := newBar(std, len(names), "Reading")
	defer bar.finish()
	lines := map[string]string{}
	for _, name := range names {
		source, err := readRuleFile(std, name)
		if err != nil {
			return nil, nil, err
		}
		rules, wrong := document.Parse(source, name)
		problems = append(problems, wrong...)
		rules = slices.DeleteFunc(rules, func(rule document.Rule) bool {
			first, twice := lines[rule.Name]
			if twice {
				problems = append(problems, document.Problem{File: name, Line: rule.Line, Rule: rule.Name, Text: "the id is there already, in " + first})
				return true
			}
			lines[rule.Name] = fmt.Sprintf("%s:%d", name, rule.Line)
			return false
		})
		files = append(files, fileOfRules{name, rules})
		bar.add(1)
	}
	return files, problems, nil
}

// ruleFileNames lists the rule files of directories, by the same criteria as scanners: YAML files that are neither
// hidden nor tests. Files on the command line are used regardless of their names.
func ruleFileNames(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		if arg == "-" {
			out = append(out, arg)
			continue
		}
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, arg)
			continue
		}
		before := len(out)
		err = filepath.WalkDir(arg, func(name string, entry fs.DirEntry, err error) error {
			base := entry.Name()
			switch {
			case err != nil:
				return err
			case name != arg && strings.HasPrefix(base, "."):
				if entry.IsDir() {
					return fs.SkipDir
				}
			case !entry.IsDir() && isRuleFile(base):
				out = append(out, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s: it contains no .yaml or .yml files", printable(arg))
		}
	}
	return out, nil
}

func isRuleFile(base string) bool {
	switch extension := filepath.Ext(base); extension {
	case ".yaml", ".yml":
		return !strings.HasSuffix(strings.TrimSuffix(base, extension), ".test")
	}
	return false
}

func readRuleFile(std streams, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(std.in, document.MaxSource+1))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	source, err := io.ReadAll(io.LimitReader(file, document.MaxSource+1))
	return source, errors.Join(err, file.Close())
}

// printRuleProblems prints problems as FILE:LINE: rule NAME: text.
func printRuleProblems(out io.Writer, problems []document.Problem) {
	for _, p := range problems {
		_, _ = fmt.Fprintln(out, printable(p.String()))
	}
}

// bar is a progress bar on a terminal, and does nothing elsewhere.
type bar struct{ *progressbar.ProgressBar }

func newBar(std streams, most int, what string) bar {
	const few = 20 // too few for a progress bar
	if most < few || !isTerminal(std.err) {
		return bar{}
	}
	return bar{progressbar.NewOptions(most, progressbar.OptionSetWriter(std.err), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())}
}

func (b bar) add(n int) {
	if b.ProgressBar != nil {
		_ = b.Add(n)
	}
}

func (b bar) finish() {
	if b.ProgressBar != nil {
		_ = b.Finish()
	}
}
