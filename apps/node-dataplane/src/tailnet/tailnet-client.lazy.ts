/** gRPC, in a file of its own: an agent without the section does without its memory. */
export { createTailnetCni } from '@unbounded/tailnet-cni';
