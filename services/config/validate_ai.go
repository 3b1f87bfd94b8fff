package config

import (
	"time"

	"github.com/palisade/palisade/services/internal/egress"
)

// validateAI checks the language model settings. A partly configured model is an error, because every call to it would
// fail.
func (c Config) validateAI(p *problemList) {
	switch {
	case c.AIURL == "" && c.AIModel != "":
		p.add("ai-url, ai-model", "only ai-model is set; set ai-url to the API that serves it, or neither to use no model")
	case c.AIURL == "" && c.AIKey != "":
		p.add("ai-url, ai-key", "only ai-key is set; set ai-url and ai-model too, or none of them to use no model")
	case c.AIURL != "" && c.AIModel == "":
		p.add("ai-url, ai-model", "only ai-url is set; set ai-model to the name of a model that it serves, or neither to use no model")
	}
	if c.AIURL != "" {
		c.validateAIURL(p)
	}
	if c.AITimeout < time.Second {
		p.add("ai-timeout", "got %v, want 1s or more", c.AITimeout)
	}
	for _, price := range []struct {
		key   string
		value float64
	}{{"ai-input-price", c.AIInputPrice}, {"ai-output-price", c.AIOutputPrice}} {
		if !(price.value >= 0 && price.value <= maxPrice) { // also refuses NaN
			p.add(price.key, "got %v, want 0 (not counted) to %d US dollars for a million tokens", price.value, maxPrice)
		}
	}
	switch {
	case c.PatternFixDaily < 0 || c.PatternFixDaily > maxPatternFixes:
		p.add("pattern-fix-daily", "got %d, want 0 (none) to %d", c.PatternFixDaily, maxPatternFixes)
	case c.PatternFixDaily > 0 && (c.AIURL == "" || c.AIModel == ""):
		p.add("pattern-fix-daily", "got %d without a language model: set ai-url and ai-model, or pattern-fix-daily to 0", c.PatternFixDaily)
	}
	if c.AIMonthlyRuns < 0 {
		p.add("ai-monthly-runs", "got %d, want 0 (none) or more", c.AIMonthlyRuns)
	}
}

// maxPatternFixes keeps the jobs of a day, which are counted for each request, few.
const maxPatternFixes = 10_000

// maxPrice is far above the price of any model, which is per million tokens: a price for one token is below 0.001.
const maxPrice = 1_000_000

// validateAIURL applies the egress guard's rules, so that a local model without an entry in egress-allow fails at
// start.
func (c Config) validateAIURL(p *problemList) {
	if problem := checkURL(c.AIURL, true); problem != "" {
		p.add("ai-url", "got %q, %s", redactURL(c.AIURL), problem)
		return
	}
	guard, err := egress.New(egress.Config{Allow: c.EgressAllow})
	if err != nil {
		return // validateOutgoing reports it
	}
	if err := guard.CheckURL(c.AIURL); err != nil {
		p.add("ai-url", "%v; name the host of a model inside your network in egress-allow", err)
	}
}
