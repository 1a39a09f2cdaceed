package cli

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/input"
)

// values are the parsers of arguments and flags, including those from the environment: leading and trailing white space
// is ignored, and invisible characters are an error. An argument is never empty; a flag may be, as if it was left out.
func values() []kong.Option {
	options := []kong.Option{
		kong.KindMapper(reflect.String, kong.MapperFunc(text)),
		kong.TypeMapper(reflect.TypeFor[uuid.UUID](), kong.MapperFunc(id)),
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

func id(ctx *kong.DecodeContext, target reflect.Value) error {
	text, err := pop(ctx, "id")
	if err != nil {
		return err
	}
	parsed, err := uuid.Parse(text)
	if err != nil {
		return fmt.Errorf("%q is no event id: it must be 32 hex digits, such as 01234567-89ab-cdef-0123-456789abcdef", text)
	}
	target.Set(reflect.ValueOf(parsed))
	return nil
}

func signed(ctx *kong.DecodeContext, target reflect.Value) error {
	return number(ctx, target, func(text string, bits int) error {
		n, err := strconv.ParseInt(text, 10, bits)
		target.SetInt(n)
		return err
	})
}

func unsigned(ctx *kong.DecodeContext, target reflect.Value) error {
	return number(ctx, target, func(text string, bits int) error {
		n, err := strconv.ParseUint(text, 10, bits)
		target.SetUint(n)
		return err
	})
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

// number parses decimal digits: 010 means ten to everyone but a C programmer, so no other base is guessed.
func number(ctx *kong.DecodeContext, target reflect.Value, parse func(text string, bits int) error) error {
	text, err := pop(ctx, "number")
	if err != nil {
		return err
	}
	if err := parse(text, target.Type().Bits()); err != nil {
		return fmt.Errorf("%q must be a whole number in decimal digits, of at most %d bits", text, target.Type().Bits())
	}
	return nil
}
