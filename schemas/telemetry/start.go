package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// complaintInterval is the minimum time between two log lines about a collector that does not accept spans.
	complaintInterval = time.Minute
	// stopWithin is how long a program waits at its end for a collector to accept the last spans.
	stopWithin = 2 * time.Second
)

// wanted reports whether the environment switches tracing on. The error is about a variable that the programs do not
// support; tracing is off then.
func wanted() (bool, error) {
	if strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true") {
		return false, nil
	}
	named := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
	switch exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "":
		if !named {
			return false, nil
		}
	case "otlp":
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: it must be otlp or none", exporter)
	}
	of := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if of != "" && of != "http/protobuf" {
		return false, fmt.Errorf(
			"OTEL_EXPORTER_OTLP_PROTOCOL is %q: only http/protobuf is supported, usually on port 4318", of,
		)
	}
	return true, nil
}

// Start switches tracing on if the standard variables request it: OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT) or
// OTEL_TRACES_EXPORTER=otlp, unless OTEL_SDK_DISABLED is true. The SDK and the exporter read the others, such as
// OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES and OTEL_EXPORTER_OTLP_HEADERS. service is the name of the program
// unless OTEL_SERVICE_NAME is set.
//
// Start never fails: a program works without traces, too. Spans wait in a bounded queue and are dropped if the
// collector does not accept them in time. stop sends the last ones, and waits at most stopWithin.
func Start(ctx context.Context, service, version string, log *slog.Logger) (stop func()) {
	off := func() {}
	on, err := wanted()
	if err != nil {
		log.Warn("tracing is off", "error", err)
	}
	if !on || err != nil {
		return off
	}
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(&errorHandler{log: log})
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Warn("tracing is off", "error", err)
		return off
	}
	// Attributes of the process, such as its arguments, are not sent: they may hold secrets.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service),
		attribute.String("service.version", version), attribute.String("service.instance.id", uuid.NewString())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		log.Warn("part of OTEL_RESOURCE_ATTRIBUTES is ignored", "error", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	restore := Use(provider)
	log.Info("tracing is on")
	return func() {
		restore()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if err := provider.Shutdown(bounded); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			log.Warn("the last spans were not sent", "error", err)
		}
	}
}

// errorHandler logs the errors of the exporter at intervals.
type errorHandler struct {
	log *slog.Logger

	mu     sync.Mutex
	logged time.Time
	silent int
}

// Handle logs an error, unless one was logged recently.
func (c *errorHandler) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.logged.IsZero() && time.Since(c.logged) < complaintInterval {
		c.silent++
		return
	}
	c.log.Warn("spans not sent to the collector", "error", err, "failures", c.silent+1)
	c.logged, c.silent = time.Now(), 0
}
