package cli

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/input"
)

// values are the parsers of arguments and flags, including those from the environment: leading and trailing white space
// is ignored, and invisible characters are an error. An argument is never empty; a flag may be, as if it was left out.
// The tag range of a number or duration, such as "1 to 100", limits its values.
func values() []kong.Option {
	options := []kong.Option{
		kong.KindMapper(reflect.String, kong.MapperFunc(text)),
		kong.NamedMapper("path", kong.MapperFunc(path)),
		kong.TypeMapper(reflect.TypeFor[uuid.UUID](), kong.MapperFunc(id)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(duration)),
	}
	for _, kind := range []reflect.Kind{reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64} {
		options = append(options, kong.KindMapper(kind, kong.MapperFunc(signed)))
	}
	for _, kind := range []reflect.Kind{reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64} {
		options = append(options, kong.KindMapper(kind, kong.MapperFunc(unsigned)))
	}
	return options
}

func text(ctx *kong.DecodeContext, target reflect.Value) error {
	value, err := pop(ctx, "string")
	if err == nil {
		target.SetString(value)
	}
	return err
}

// path reads the name of a file or folder. Kong's own mapper makes the current folder of an empty one.
func path(ctx *kong.DecodeContext, target reflect.Value) error {
	name, err := pop(ctx, "file")
	switch {
	case err != nil:
		return err
	case name != "":
		target.SetString(kong.ExpandPath(name))
	case !ctx.Value.HasDefault:
		target.SetString("")
	}
	return nil
}

func id(ctx *kong.DecodeContext, target reflect.Value) error {
	text, err := pop(ctx, "id")
	if err != nil {
		return err
	}
	parsed, err := uuid.Parse(text)
	if err != nil {
		return fmt.Errorf("%q is not an event id: it must be 32 hex digits, such as 01234567-89ab-cdef-0123-456789abcdef",
			text)
	}
	target.Set(reflect.ValueOf(parsed))
	return nil
}

// Numbers have decimal digits: 010 means ten to everyone but a C programmer, so no other base is guessed.

func signed(ctx *kong.DecodeContext, target reflect.Value) error {
	parse := func(text string) (int64, error) { return strconv.ParseInt(text, 10, target.Type().Bits()) }
	return ordered(ctx, whole(target), parse, target.SetInt)
}

func unsigned(ctx *kong.DecodeContext, target reflect.Value) error {
	parse := func(text string) (uint64, error) { return strconv.ParseUint(text, 10, target.Type().Bits()) }
	return ordered(ctx, whole(target), parse, target.SetUint)
}

func whole(target reflect.Value) string {
	return fmt.Sprintf("a whole number in decimal digits, of at most %d bits", target.Type().Bits())
}

func duration(ctx *kong.DecodeContext, target reflect.Value) error {
	set := func(d time.Duration) { target.SetInt(int64(d)) }
	return ordered(ctx, "a duration, such as 90s or 1h30m", time.ParseDuration, set)
}

// ordered reads a value, and compares it with its range. what describes a valid value.
func ordered[T cmp.Ordered](ctx *kong.DecodeContext, what string, parse func(string) (T, error), set func(T)) error {
	text, err := pop(ctx, "value")
	if err != nil {
		return err
	}
	value, err := parse(text)
	if err != nil {
		return fmt.Errorf("%q must be %s", text, what)
	}
	limits := ctx.Value.Tag.Get("range")
	if from, to, limited := strings.Cut(limits, " to "); limited {
		least, noLeast := parse(from)
		most, noMost := parse(to)
		if err := errors.Join(noLeast, noMost); err != nil {
			return fmt.Errorf("the range %q of the program: %w", limits, err)
		}
		if value < least || value > most {
			return fmt.Errorf("it is %s and must be %s", text, limits)
		}
	}
	set(value)
	return nil
}

// pop returns the next value of the command line.
func pop(ctx *kong.DecodeContext, expected string) (string, error) {
	token, err := ctx.Scan.PopValue(expected)
	if err != nil {
		return "", err
	}
	given := fmt.Sprint(token.Value)
	value, err := input.Any(given)
	switch {
	case err != nil:
		return "", fmt.Errorf("the value %w", err)
	case value == "" && given != "":
		return "", errors.New("the value is only white space: leave it out, or give one")
	case value == "" && ctx.Value.Flag == nil:
		return "", errors.New("the value is empty")
	}
	return value, nil
}
