package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/rules/document"
)

// Limits of a request: the server accepts 8 MiB.
const (
	rulesAtOnce = 1000
	ruleBytes   = 3 << 20 // texts grow when they are nested in another text
)

func newRulesImport(std streams) *cobra.Command {
	var flags clientFlags
	var i rulesImport
	var starter bool
	cmd := &cobra.Command{
		Use:   "import DIR|FILE…",
		Short: "Import rules from directories and files",
		Long: `Import rules from YAML or JSON files. From directories, every .yaml and .yml file that is neither hidden nor a test
(.test.yaml) is imported. An unchanged rule stays as it is; a changed rule becomes its next version and keeps its mode.
New rules get the mode monitor, or the mode in --mode: by default, nothing blocks.

All files are validated before anything is uploaded: one invalid rule, and nothing is imported. --skip-bad imports the
valid rules. --starter imports the starter rules of this release instead of files.

Exit status: 0 the rules are stored, 2 they are not.`,
		Example: `  palisade rules import ./rules
  palisade rules import ./rules --dry-run
  palisade rules import secrets.yaml --mode block
  palisade rules import --starter`,
		Args: func(cmd *cobra.Command, args []string) error {
			if starter {
				return noArgs(cmd, args)
			}
			return ruleFiles(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(oneOf("output", i.output, "table", "json"), oneOf("mode", i.mode, ruleModes...)); err != nil {
				return usageError{err}
			}
			i.std = std
			if starter {
				return i.starter(cmd.Context(), flags)
			}
			return i.run(cmd.Context(), flags, args)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&i.mode, "mode", "monitor", "mode of new rules: "+strings.Join(ruleModes, ", "))
	cmd.Flags().BoolVar(&i.skipBad, "skip-bad", false, "import the valid rules even if others are invalid")
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "print what would be stored, and store nothing")
	cmd.Flags().BoolVar(&starter, "starter", false, "import the starter rules of the product")
	cmd.Flags().StringVarP(&i.output, "output", "o", "table", "table or json")
	cmd.MarkFlagsMutuallyExclusive("starter", "dry-run")
	return cmd
}

// importAnswer is the response to a batch, and the sum over all batches.
type importAnswer struct {
	Rules     []json.RawMessage `json:"rules"`
	Problems  []json.RawMessage `json:"problems"`
	Created   int               `json:"created"`
	Updated   int               `json:"updated"`
	Unchanged int               `json:"unchanged"`
}

// rulesImport uploads rules in batches and sums up the results.
type rulesImport struct {
	std             streams
	book            *rulebook
	mode, output    string
	skipBad, dryRun bool

	total importAnswer
}

func (i *rulesImport) run(ctx context.Context, flags clientFlags, args []string) error {
	files, problems, err := readRules(i.std, args)
	if err != nil {
		return err
	}
	printRuleProblems(i.std.err, problems)
	if len(problems) > 0 && !i.skipBad {
		_, _ = fmt.Fprintln(i.std.err, "palisade: nothing was imported. Correct the rules, or import only the valid ones with --skip-bad.")
		return errReported
	}
	if i.book, err = openRulebook(ctx, flags, i.std); err != nil {
		return err
	}
	count := 0
	for _, file := range files {
		count += len(file.rules)
	}
	i.total.Rules = []json.RawMessage{}
	if err := i.sendAll(ctx, files, count); err != nil {
		return err
	}
	for _, p := range problems {
		shown, err := json.Marshal(map[string]any{"file": p.File, "line": p.Line, "rule": p.Rule, "text": p.Text})
		if err != nil {
			return err
		}
		i.total.Problems = append(i.total.Problems, shown)
	}
	return i.print(fmt.Sprintf("%d files, %d rules", len(files), count))
}

func (i *rulesImport) sendAll(ctx context.Context, files []fileOfRules, count int) error {
	bar := newBar(i.std, count, "Importing")
	defer bar.finish()
	b := &ruleBatch{}
	send := func() error {
		if b.count == 0 {
			return nil
		}
		if err := i.send(ctx, b); err != nil {
			return i.withProgress(err)
		}
		bar.add(b.count)
		*b = ruleBatch{}
		return nil
	}
	for _, file := range files {
		for _, rule := range file.rules {
			if b.count == rulesAtOnce || b.count > 0 && b.size+len(rule.Document) > ruleBytes {
				if err := send(); err != nil {
					return err
				}
			}
			b.add(file.name, rule)
		}
	}
	return send()
}

// ruleBatch is one request: the valid rules of files, as read here.
type ruleBatch struct {
	files       []map[string]string
	documents   [][]string // per file
	count, size int
}

func (b *ruleBatch) add(file string, rule document.Rule) {
	last := len(b.files) - 1
	if last < 0 || b.files[last]["name"] != file {
		b.files, b.documents, last = append(b.files, map[string]string{"name": file}), append(b.documents, nil), last+1
	}
	b.documents[last] = append(b.documents[last], string(rule.Document))
	b.count, b.size = b.count+1, b.size+len(rule.Document)
}

func (i *rulesImport) send(ctx context.Context, b *ruleBatch) error {
	for n, file := range b.files {
		file["text"] = `{"rules":[` + strings.Join(b.documents[n], ",\n") + `]}`
	}
	body := map[string]any{"files": b.files, "mode": "RULE_MODE_" + strings.ToUpper(i.mode), "skipBad": i.skipBad, "dryRun": i.dryRun}
	var answer importAnswer
	if _, err := i.book.call(ctx, http.MethodPost, nil, body, &answer, "rules"); err != nil {
		return err
	}
	i.total.Rules, i.total.Problems = append(i.total.Rules, answer.Rules...), append(i.total.Problems, answer.Problems...)
	i.total.Created, i.total.Updated, i.total.Unchanged = i.total.Created+answer.Created, i.total.Updated+answer.Updated, i.total.Unchanged+answer.Unchanged
	return nil
}

// withProgress adds to an error what has been stored before it.
func (i *rulesImport) withProgress(err error) error {
	if i.total.Created+i.total.Updated == 0 || i.dryRun {
		return err
	}
	return fmt.Errorf("%w\n  %d rules were created and %d updated before; repeat the import for the rest", err, i.total.Created, i.total.Updated)
}

func (i *rulesImport) starter(ctx context.Context, flags clientFlags) (err error) {
	if i.book, err = openRulebook(ctx, flags, i.std); err != nil {
		return err
	}
	if _, err := i.book.call(ctx, http.MethodPost, nil, struct{}{}, &i.total, "starter-rules"); err != nil {
		return err
	}
	return i.print(fmt.Sprintf("%d rules that come with the product", len(i.total.Rules)))
}

func (i *rulesImport) print(what string) error {
	if i.output == "json" {
		if i.total.Problems == nil {
			i.total.Problems = []json.RawMessage{}
		}
		return json.NewEncoder(i.std.out).Encode(i.total)
	}
	more := ""
	if n := len(i.total.Problems); n > 0 {
		more = fmt.Sprintf(", problems %d", n)
	}
	if i.dryRun {
		more += " (nothing was stored)"
	}
	_, err := fmt.Fprintf(i.std.out, "%s: created %d, updated %d, unchanged %d%s\n", what, i.total.Created, i.total.Updated, i.total.Unchanged, more)
	return err
}

func newRulesValidate(std streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "validate DIR|FILE…",
		Short: "Validate rules, and print problems with file and line",
		Long: `Validate rules and print every problem with file, line and rule. This needs no server. It checks what makes scanners
reject a rule. Only scanners can parse the code inside of patterns; of that it checks brackets and double quotes.

Exit status: 0 no problems, 1 problems, 2 the check failed.`,
		Example: `  palisade rules validate ./rules
  palisade rules validate eval.yaml -o json`,
		Args: ruleFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			files, problems, err := readRules(std, args)
			if err != nil {
				return err
			}
			return printValidation(std, files, problems, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table (FILE:LINE: rule NAME: problem) or json")
	return cmd
}

// ruleProblem is a problem in a file of rules.
type ruleProblem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Rule string `json:"rule"`
	Text string `json:"text"`
}

func printValidation(std streams, files []fileOfRules, problems []document.Problem, output string) error {
	good := 0
	for _, file := range files {
		good += len(file.rules)
	}
	if output == "json" {
		list := []ruleProblem{}
		for _, p := range problems {
			list = append(list, ruleProblem(p))
		}
		if err := json.NewEncoder(std.out).Encode(map[string]any{"files": len(files), "rules": good, "problems": list}); err != nil {
			return err
		}
	} else {
		printRuleProblems(std.out, problems)
		_, _ = fmt.Fprintf(std.err, "%s: %s, %s\n", plural(int64(len(files)), "file", "files"),
			plural(int64(good), "valid rule", "valid rules"), plural(int64(len(problems)), "problem", "problems"))
	}
	if len(problems) > 0 {
		return errNo
	}
	return nil
}
