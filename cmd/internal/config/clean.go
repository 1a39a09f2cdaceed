package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/schemas/input"
)

// clean trims all texts of a configuration, from the file and from the environment, and reports those that cannot be
// intended. It repeats no value, since it may be a secret.
func clean(c *Config) error {
	var faults []error
	cleanIn(reflect.ValueOf(c).Elem(), "", &faults)
	return errors.Join(faults...)
}

func cleanIn(v reflect.Value, key string, faults *[]error) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				cleanIn(v.Field(i), childKey(key, field), faults)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanIn(v.Index(i), fmt.Sprintf("%s[%d]", key, i), faults)
		}
	case reflect.String:
		read := input.Any
		if strings.HasSuffix(strings.ToLower(key), "password") {
			read = input.Password
		}
		value, err := read(v.String())
		switch {
		case err != nil:
			*faults = append(*faults, fmt.Errorf("%s %w", key, err))
		case value == "" && v.String() != "":
			*faults = append(*faults, fmt.Errorf("%s is only white space: leave it out, or give a value", key))
		default:
			v.SetString(value)
		}
	}
}

// childKey returns the key of a field as in the file; for a field that only the environment can set, its variable.
func childKey(key string, field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	if variable := field.Tag.Get("env"); name == "-" && variable != "" {
		name = envPrefix + variable
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

// octal matches what YAML reads as a base-8 number, and people as decimal.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// fractional is a tag that the decoder accepts for texts only, and names in its errors.
const fractional = "!fraction"

// numberFaults reports numbers that the decoder reads as others: 010 as 8, and for a setting that is a whole number 1.5
// as 1.
func numberFaults(name string, b []byte) error {
	var document yaml.Node
	if yaml.Unmarshal(b, &document) != nil {
		return nil // the decoder reports it
	}
	var faults []error
	var look func(*yaml.Node)
	look = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Style == 0 && n.Tag == "!!int" && octal.MatchString(n.Value) {
			faults = append(faults, fmt.Errorf("%s, line %d: %s begins with 0, and YAML reads such a number to the base 8: "+
				"write it without the 0, or in quotes if it is a text", name, n.Line, n.Value))
		}
		number, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if n.Tag == "!!float" && err == nil && number != math.Trunc(number) {
			n.Tag = fractional
		}
		for _, below := range n.Content {
			look(below)
		}
	}
	look(&document)
	var wrong *yaml.TypeError
	if errors.As(document.Decode(new(Config)), &wrong) {
		for _, e := range wrong.Errors {
			m := wrongType.FindStringSubmatch(e) // other values of another type are reported by the first decoding
			if m != nil && strings.Contains(e, fractional) && strings.HasPrefix(describeType(m[3]), "a whole number") {
				faults = append(faults, typeFaults(name, &yaml.TypeError{Errors: []string{e}}))
			}
		}
	}
	return errors.Join(faults...)
}
