export { createTailnetCni, type TailnetCni, TailnetCniError } from './client.ts';
export {
  type AddRequest,
  type AddResponse,
  type CheckResponse,
  type ContainerRequest,
  TAILNET_PACKAGE,
  TAILNET_SERVICE,
  TAILNET_SOCKET,
  tailnetDefinition,
} from './service.ts';
