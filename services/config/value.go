package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// ByteSize is a number of bytes, written as 16MiB, 64KiB, 1.5GB or 1024.
type ByteSize int64

// String writes the size in the largest binary unit that divides it, so that it is exact.
func (s ByteSize) String() string {
	for _, unit := range []struct {
		name  string
		bytes ByteSize
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s != 0 && s%unit.bytes == 0 {
			return strconv.FormatInt(int64(s/unit.bytes), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// ParseByteSize reads a size: a number with or without a unit, binary (KiB) or decimal (KB).
func ParseByteSize(text string) (ByteSize, error) {
	n, err := humanize.ParseBytes(strings.TrimSpace(text))
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("got %q, want a size such as 16MiB, 64KiB or 1048576", text)
	}
	return ByteSize(n), nil
}

// ParseDuration reads a duration as Go writes it (90s, 1h30m) and, before that, whole days: 30d, 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	fail := fmt.Errorf("got %q, want a duration such as 500ms, 60s, 15m, 2h or 30d", text)
	rest := strings.TrimSpace(text)
	var total time.Duration
	if before, after, found := strings.Cut(rest, "d"); found {
		days, err := strconv.ParseUint(before, 10, 32)
		if err != nil || days > uint64(math.MaxInt64/(24*time.Hour)) {
			return 0, fail
		}
		if total, rest = time.Duration(days)*24*time.Hour, after; rest == "" {
			return total, nil
		}
		if strings.ContainsAny(rest, "+-") {
			return 0, fail
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || total+d < total && d > 0 {
		return 0, fail
	}
	return total + d, nil
}

// typeName is the name of a Go type in help texts. It also lists the types that set accepts.
func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[ByteSize]():
		return "size"
	}
	switch t.Kind() {
	case reflect.Float64:
		return "number"
	case reflect.String, reflect.Bool, reflect.Int:
		return t.Kind().String()
	default:
		panic("config: no way to read a " + t.String())
	}
}

// set parses text into the field f. Errors contain the value and the expected form, not the key.
func (c *Config) set(f Field, text string) error {
	v := reflect.ValueOf(c).Elem().Field(f.index)
	switch f.Type {
	case "string":
		v.SetString(text)
	case "bool":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("got %q, want true or false", text)
		}
		v.SetBool(b)
	case "int":
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("got %q, want a whole number", text)
		}
		v.SetInt(int64(n))
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("got %q, want a number", text)
		}
		v.SetFloat(n)
	case "duration":
		d, err := ParseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
	case "size":
		n, err := ParseByteSize(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(n))
	default:
		return errors.New("no way to read a " + f.Type)
	}
	return nil
}

// get writes the field f in the form that set reads.
func (c *Config) get(f Field) string {
	return fmt.Sprint(reflect.ValueOf(c).Elem().Field(f.index).Interface())
}
