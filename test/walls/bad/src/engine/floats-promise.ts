const act = async () => 'done'

export function itself(): void {
  act()
}
