// The client of the API that serves this page: openapi-fetch over the paths of openapi.ts, so that a path, a
// parameter or a field that is not in the document does not compile. An error is a sentence for people, made from the
// API's response. The stream of events has its own reader (follow.ts): the library returns its bytes and not its
// events, and does not reconnect as the browser's EventSource does.
import createClient, { type ClientPathsWithMethod, type MethodResponse, createFinalURL, createQuerySerializer, defaultPathSerializer } from "openapi-fetch"
import type { components, paths } from "./openapi"
import { AS_OF } from "./router"

export const client = createClient<paths, "application/json">({
  baseUrl: location.origin,
  headers: { Accept: "application/json" },
  fetch: (request) => fetch(request),
})

/** What can be requested, as the document names it. */
export type Path = ClientPathsWithMethod<typeof client, "get">

type Body<P extends Path> = MethodResponse<typeof client, "get", P>
export type DataOf<P extends Path> = Body<P> extends { data: infer T } ? T : never
export type MetaOf<P extends Path> = Body<P> extends { meta: infer M } ? M : undefined

type Parameters<P extends Path> = paths[P]["get"]["parameters"]
export type QueryOf<P extends Path> = NonNullable<Parameters<P>["query"]>

/** Paths that have a parameter with this name. */
export type PathWith<Name extends string> = { [P in Path]: [QueryOf<P>] extends [never] ? never : Name extends keyof QueryOf<P> ? P : never }[Path]

/** A number may be given as text, because a block number in the address bar may be too large for a float. */
type Given<T> = T extends number ? T | string : T

/** Parameters; those that are null are left out. */
export type Query<P extends Path> = { [Name in keyof QueryOf<P>]?: Given<QueryOf<P>[Name]> | null }

/** The parameters of a request, in its path and its query. */
export type Params<P extends Path> = { query?: Query<P> } & (NonNullable<Parameters<P>["path"]> extends never ? { path?: undefined } : { path: Parameters<P>["path"] })

/** The state that an answer is made from. */
export interface Position {
  block: string | null
  seq: string | null
  generation: string | null
}

export interface Answer<T, M = undefined> {
  data: T
  meta: M
  position: Position
}

type Fault = components["schemas"]["Fault"]
type Progress = components["schemas"]["BuildingStatus"]

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly details: unknown,
    readonly requestId: string | null,
    /** Seconds after which to retry; null: waiting does not help. */
    readonly retryAfter: number | null,
  ) {
    super(message)
  }

  /** What is wrong with each field of the request. */
  get faults(): Fault[] {
    return Array.isArray(this.details) ? (this.details as Fault[]) : []
  }

  /**
   * Whether the same request may succeed once the log has grown: something does not exist yet, or a block is not indexed yet.
   */
  get mayPass(): boolean {
    return this.retryAfter !== null || this.status === 404 || (this.faults.length > 0 && this.faults.every(({ field }) => field === AS_OF))
  }

  /** The progress of the first read model while it is built. */
  get progress(): Progress | null {
    const details = this.details as { progress?: Progress } | null | undefined
    return details && !Array.isArray(details) ? (details.progress ?? null) : null
  }
}

/** Seconds before a retry if the API names none. */
const PATIENCE = 5

/** The URL of a request that the client does not make itself: a file to save, a stream, a number to explain. */
export function url<P extends Path>(path: P, params: Params<P>): string {
  return createFinalURL(path, { baseUrl: "", params, querySerializer: createQuerySerializer(), pathSerializer: defaultPathSerializer })
}

/** Requests an answer; throws an ApiError, or the AbortError of the signal. */
export function ask<P extends Path>(path: P, params: Params<P>, init: RequestInit = {}): Promise<Answer<DataOf<P>, MetaOf<P>>> {
  // The caller knows the parameters and the answer of its path; here the path may be any.
  const call = client.GET(path, { ...init, params } as never) as Promise<Called<{ data: DataOf<P>; meta: MetaOf<P> }>>
  return answered(call, init.signal)
}

/** What the client returns for a call. */
export interface Called<B> {
  data?: B
  error?: unknown
  response: Response
}

/** The fields of every error in the document. */
interface Refusal {
  code: string
  message: string
  requestId: string
  details?: unknown
}

/** The result of a call of the client; throws an ApiError, or the AbortError of its signal. */
export async function said<B>(call: Promise<Called<B>>, signal?: AbortSignal | null): Promise<{ body: B; response: Response }> {
  let called: Called<B>
  try {
    called = await call
  } catch (error) {
    if (signal?.aborted) throw error
    // A successful response that is not JSON ends here; the body of one that is not successful is text then.
    if (error instanceof SyntaxError) throw new ApiError("The response of the server is not JSON.", 200, "NOT_JSON", null, null, PATIENCE)
    throw new ApiError("The server cannot be reached. Retrying.", 0, "UNREACHABLE", null, null, PATIENCE)
  }
  const { data, error, response } = called
  if (data !== undefined) return { body: data, response }
  const { status, headers } = response
  if (typeof error !== "object" || error === null) throw new ApiError(`The server responded with ${status}, and not in JSON.`, status, "NOT_JSON", null, headers.get("X-Request-Id"), PATIENCE)
  const named = headers.get("Retry-After")
  // A 503 of navlog without Retry-After is about a change of which it is not known whether it happened: not to be repeated.
  const repeats = status === 429 || (status >= 500 && (status !== 503 || named !== null))
  const again = repeats ? Math.max(1, Number(named) || PATIENCE) : null
  const refusal = (error as { error?: Refusal }).error
  throw new ApiError(refusal?.message ?? `The server responded with ${status}.`, status, refusal?.code ?? "UNKNOWN", refusal?.details ?? null, refusal?.requestId ?? null, again)
}

/** The answer of a call of the client; throws the same errors as said. */
export async function answered<T, M = undefined>(call: Promise<Called<{ data: T; meta?: M }>>, signal?: AbortSignal | null): Promise<Answer<T, M>> {
  const { body, response } = await said(call, signal)
  const { headers } = response
  return {
    data: body.data,
    meta: body.meta as M,
    position: { block: headers.get("X-Indexed-Block"), seq: headers.get("X-Indexed-Seq"), generation: headers.get("X-Generation") },
  }
}
