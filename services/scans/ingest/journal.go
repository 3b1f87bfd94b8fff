package ingest

import (
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/scans/scanner"
)

// maxJournal is how many bytes of results stay in memory: those of 10,000 usual ones.
const maxJournal = 8 << 20

// maxRules is how many rules the results of a report may name, each in each group: as many as are taken from a scanner,
// whose results a job has to be able to store. What tools have is far less; what is known of them stays in memory until
// the results are stored.
var maxRules = scanner.DefaultLimits().MaxRules

// errManyRules refuses more.
var errManyRules = apierr.TooLarge("the results name more than %d rules, the most that one report may: "+
	"a ruleId is to name what was looked for, not the result; split the report, or give its rules names that results share", maxRules)

// journal holds the results of a report as they will be stored, from when they are read until it is known which of them
// bring news. So a report is read, and its results are rendered, once.
type journal struct {
	spill *spill
	rules []*ruleUse
	known map[ruleUseKey]int
	words map[string]string // one string for what many results say
}

// ruleUse is a rule that results of a group name.
type ruleUse struct {
	of   *group
	rule *Rule
	name string // present name
	id   int64
	// hashed is the id with which the contents of the results were hashed.
	hashed int64
}

// ruleUseKey tells them apart by how the report calls the rule, and by its present name: of texts, only the first is
// stored.
type ruleUseKey struct {
	of             *group
	reported, name string
}

func newJournal(space spool.Space) *journal {
	return &journal{spill: newSpill(space, maxJournal), known: map[ruleUseKey]int{}, words: map[string]string{}}
}

// The bits of a record.
const (
	bitSuppressed = 1 << iota
	bitOwnID
	bitHistorical
	bitMalicious
)

// add writes a result: its size, its rule, the bits and the texts.
func (j *journal) add(i *Result) {
	key := ruleUseKey{i.of, i.Rule.Name, i.ruleName}
	use, known := j.known[key]
	if !known {
		use = len(j.rules)
		j.known[key] = use
		j.rules = append(j.rules, &ruleUse{of: i.of, rule: i.Rule, name: i.ruleName, id: i.ruleID, hashed: i.ruleID})
	}
	start := len(j.spill.open)
	b := append(j.spill.open, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(use))
	b = append(b, i.bits())
	b = binary.LittleEndian.AppendUint64(b, uint64(i.contentHash))
	for _, text := range i.texts() {
		b = binary.AppendUvarint(b, uint64(len(*text)))
		b = append(b, *text...)
	}
	b = append(b, i.encoded...)
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	if j.spill.open = b; len(b) >= partSize {
		j.spill.seal()
	}
}

// texts are what a record holds beside the content. Those from uniqueTexts on differ from result to result.
func (i *Result) texts() [11]*string {
	return [...]*string{
		&i.Product, &i.Severity, &i.Exposure, &i.Transitivity, &i.EPSSProbability, &i.ValidationState, &i.PolicyMode,
		&i.Package, &i.Advisory, &i.path, &i.birthName,
	}
}

const uniqueTexts = 7

func (i *Result) bits() (bits byte) {
	for n, set := range [...]bool{i.Suppressed, i.ownID, i.Historical, i.Malicious} {
		if set {
			bits |= 1 << n
		}
	}
	return bits
}

var errJournal = errors.New("what was put aside of a result cannot be read")

// each passes the results that wanted chooses by their group and number in it, without their content: see load.
func (j *journal) each(wanted func(of *group) (result int, ok bool), yield func(*Result) error) error {
	var buffer []byte
	for n := range j.spill.parts {
		part := j.spill.part(n, &buffer)
		if j.spill.failed != nil {
			return j.spill.failed
		}
		for len(part) >= 4 {
			size := 4 + int(binary.LittleEndian.Uint32(part))
			if size > len(part) {
				return errJournal
			}
			record := part[4:size]
			part = part[size:]
			use, width := binary.Uvarint(record)
			if width <= 0 || use >= uint64(len(j.rules)) {
				return errJournal
			}
			result, ok := wanted(j.rules[use].of)
			if !ok {
				continue
			}
			i := &Result{result: result}
			if !j.decode(i, j.rules[use], append([]byte(nil), record[width:]...)) {
				return errJournal
			}
			if err := yield(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode reads a record, which becomes part of the result.
func (j *journal) decode(i *Result, use *ruleUse, record []byte) bool {
	if len(record) < 9 {
		return false
	}
	i.of, i.Group, i.Rule, i.ruleName, i.ruleID = use.of, use.of.Analysis, use.rule, use.name, use.id
	bits := record[0]
	i.Suppressed, i.ownID = bits&bitSuppressed != 0, bits&bitOwnID != 0
	i.Historical, i.Malicious = bits&bitHistorical != 0, bits&bitMalicious != 0
	i.contentHash = int64(binary.LittleEndian.Uint64(record[1:]))
	record = record[9:]
	for n, text := range i.texts() {
		size, width := binary.Uvarint(record)
		if width <= 0 || size > uint64(len(record)-width) {
			return false
		}
		record = record[width:]
		if n < uniqueTexts {
			*text = j.word(record[:size])
		} else {
			*text = string(record[:size])
		}
		record = record[size:]
	}
	if i.encoded = record; use.id != use.hashed {
		i.contentHash = i.hash()
	}
	return true
}

// maxWords bounds the words that are kept; whatever a report says, they are few.
const maxWords = 1000

func (j *journal) word(text []byte) string {
	word, known := j.words[string(text)]
	if !known {
		word = string(text)
		if len(j.words) < maxWords {
			j.words[word] = word
		}
	}
	return word
}

// load reads the content of a result that came from the journal.
func (i *Result) load() error {
	if i.Content != nil {
		return nil
	}
	i.Content = &storev1.FindingContent{}
	return proto.Unmarshal(i.encoded, i.Content)
}

func (j *journal) close() {
	j.spill.close()
	j.rules, j.known, j.words = nil, nil, nil
}
