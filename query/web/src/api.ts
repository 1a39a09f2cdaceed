// The client of the API that this page comes from: openapi-fetch over the paths of openapi.ts, so that a path, a parameter or
// a field that the document does not have does not compile. An error is a sentence for people, made of what the API said.
// The stream of events is a reader of its own (follow.ts): the library gives the bytes of one and not its events, and does
// not open it again where it broke off, as the browser's EventSource does.
import createClient, { type ClientPathsWithMethod, type MethodResponse, createFinalURL, createQuerySerializer, defaultPathSerializer } from "openapi-fetch"
import type { components, paths } from "./openapi"
import { AS_OF } from "./router"

export const client = createClient<paths, "application/json">({
  baseUrl: location.origin,
  headers: { Accept: "application/json" },
  fetch: (request) => fetch(request),
})

/** What can be asked, as the document writes it. */
export type Path = ClientPathsWithMethod<typeof client, "get">

type Body<P extends Path> = MethodResponse<typeof client, "get", P>
export type DataOf<P extends Path> = Body<P> extends { data: infer T } ? T : never
export type MetaOf<P extends Path> = Body<P> extends { meta: infer M } ? M : undefined

type Parameters<P extends Path> = paths[P]["get"]["parameters"]
export type QueryOf<P extends Path> = NonNullable<Parameters<P>["query"]>

/** Paths that have a parameter of this name. */
export type PathWith<Name extends string> = { [P in Path]: [QueryOf<P>] extends [never] ? never : Name extends keyof QueryOf<P> ? P : never }[Path]

/** A number may be given as it is written: that of a block in the address bar may be one that no float holds. */
type Given<T> = T extends number ? T | string : T

/** Parameters; those that are null are left out. */
export type Query<P extends Path> = { [Name in keyof QueryOf<P>]?: Given<QueryOf<P>[Name]> | null }

/** The parameters of a question, in its path and after it. */
export type Params<P extends Path> = { query?: Query<P> } & (NonNullable<Parameters<P>["path"]> extends never ? { path?: undefined } : { path: Parameters<P>["path"] })

/** Which state an answer is made of. */
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
    /** Seconds after which it may be tried again; null: time alone does not help. */
    readonly retryAfter: number | null,
  ) {
    super(message)
  }

  /** What is wrong with each field of the request. */
  get faults(): Fault[] {
    return Array.isArray(this.details) ? (this.details as Fault[]) : []
  }

  /** Whether the same question may have an answer once the log went on: what is not there yet, or a block that is not indexed yet. */
  get mayPass(): boolean {
    return this.retryAfter !== null || this.status === 404 || (this.faults.length > 0 && this.faults.every(({ field }) => field === AS_OF))
  }

  /** How far the first read model is, while it is built. */
  get progress(): Progress | null {
    const details = this.details as { progress?: Progress } | null | undefined
    return details && !Array.isArray(details) ? (details.progress ?? null) : null
  }
}

/** Seconds between two tries where the API named none. */
const PATIENCE = 5

/** The address of a question, for what is not asked by the client: a file to save, a stream, a number to explain. */
export function url<P extends Path>(path: P, params: Params<P>): string {
  return createFinalURL(path, { baseUrl: "", params, querySerializer: createQuerySerializer(), pathSerializer: defaultPathSerializer })
}

/** Asks; throws an ApiError, or the AbortError of the signal. */
export function ask<P extends Path>(path: P, params: Params<P>, init: RequestInit = {}): Promise<Answer<DataOf<P>, MetaOf<P>>> {
  // Which parameters and which answer a path has is known where it is: here it stands for all of them.
  const call = client.GET(path, { ...init, params } as never) as Promise<Called<{ data: DataOf<P>; meta: MetaOf<P> }>>
  return answered(call, init.signal)
}

/** What the client says of a call. */
interface Called<B> {
  data?: B
  error?: unknown
  response: Response
}

/** What every error of the document has. */
interface Refusal {
  code: string
  message: string
  requestId: string
  details?: unknown
}

/** What a call of the client gave; throws an ApiError, or the AbortError of its signal. */
export async function said<B>(call: Promise<Called<B>>, signal?: AbortSignal | null): Promise<{ body: B; response: Response }> {
  let called: Called<B>
  try {
    called = await call
  } catch (error) {
    if (signal?.aborted) throw error
    // So it is where a good answer is not what it should be; one that is not good is text then.
    if (error instanceof SyntaxError) throw new ApiError("The server answered, and not in JSON.", 200, "NOT_JSON", null, null, PATIENCE)
    throw new ApiError("The server cannot be reached. It is tried again.", 0, "UNREACHABLE", null, null, PATIENCE)
  }
  const { data, error, response } = called
  if (data !== undefined) return { body: data, response }
  const { status, headers } = response
  if (typeof error !== "object" || error === null) throw new ApiError(`The server answered ${status} and not in JSON.`, status, "NOT_JSON", null, headers.get("X-Request-Id"), PATIENCE)
  const again = status === 429 || status >= 500 ? Math.max(1, Number(headers.get("Retry-After")) || PATIENCE) : null
  const refusal = (error as { error?: Refusal }).error
  throw new ApiError(refusal?.message ?? `The server answered ${status}.`, status, refusal?.code ?? "UNKNOWN", refusal?.details ?? null, refusal?.requestId ?? null, again)
}

/** The answer that a call of the client gave; throws as said does. */
export async function answered<T, M = undefined>(call: Promise<Called<{ data: T; meta?: M }>>, signal?: AbortSignal | null): Promise<Answer<T, M>> {
  const { body, response } = await said(call, signal)
  const { headers } = response
  return {
    data: body.data,
    meta: body.meta as M,
    position: { block: headers.get("X-Indexed-Block"), seq: headers.get("X-Indexed-Seq"), generation: headers.get("X-Generation") },
  }
}
