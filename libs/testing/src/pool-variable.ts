/** The environment variable with the path of the socket of the pool of API servers; set where one runs. */
export const POOL_VARIABLE = 'UNBOUNDED_API_SERVER_POOL';
